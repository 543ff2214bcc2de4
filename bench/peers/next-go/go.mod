module bench/next

go 1.19

require (
	github.com/robfig/cron/v3 v3.0.1
	github.com/teambition/rrule-go v1.8.2
)
