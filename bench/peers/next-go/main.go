// Peers of bench/next in Go: robfig/cron, rrule-go. Prints `peer figure rate` by processor time.
//
// Usage: next-go SECONDS      (of each figure)
package main

import (
	"fmt"
	"math/rand"
	"os"
	"strconv"
	"syscall"
	"time"

	"github.com/robfig/cron/v3"
	"github.com/teambition/rrule-go"
)

func cpu() float64 {
	var u syscall.Rusage
	_ = syscall.Getrusage(syscall.RUSAGE_SELF, &u)
	return float64(u.Utime.Sec+u.Stime.Sec) + float64(u.Utime.Usec+u.Stime.Usec)/1e6
}

func rate(peer, figure string, seconds float64, call func(i int)) {
	count := 0
	begin := cpu()
	for cpu()-begin < seconds {
		for i := 0; i < 64; i++ {
			call(count)
			count++
		}
	}
	fmt.Printf("%s %s %.0f\n", peer, figure, float64(count)/(cpu()-begin))
}

func must(err error) {
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func main() {
	seconds, err := strconv.ParseFloat(os.Args[1], 64)
	must(err)
	zone, err := time.LoadLocation("America/New_York")
	must(err)
	low := time.Date(2020, 1, 1, 0, 0, 0, 0, time.UTC).Unix()
	high := time.Date(2040, 1, 1, 0, 0, 0, 0, time.UTC).Unix()
	random := rand.New(rand.NewSource(20261130))
	instants := make([]time.Time, 4096)
	for i := range instants {
		instants[i] = time.Unix(low+random.Int63n(high-low), 0).In(zone)
	}
	at := func(i int) time.Time { return instants[i%len(instants)] }
	schedule, err := cron.ParseStandard("30 9 * * 1-5")
	must(err)
	rate("robfig/cron", "weekday_new_york", seconds, func(i int) { schedule.Next(at(i)) })
	texts := []string{"30 9 * * 1-5", "*/15 8-18 * * MON-FRI", "0 0 1 */3 *"}
	rate("robfig/cron", "parse", seconds, func(i int) { _, _ = cron.ParseStandard(texts[i%3]) })
	for _, r := range [][2]string{{"rrule_weekly", "FREQ=WEEKLY;BYDAY=MO,WE,FR"}, {"rrule_monthly", "FREQ=MONTHLY;BYDAY=-1FR"}} {
		rule, err := rrule.StrToRRule("DTSTART;TZID=America/New_York:20190107T093000\nRRULE:" + r[1])
		must(err)
		rate("rrule-go", r[0], seconds, func(i int) { rule.After(at(i), false) })
	}
}
