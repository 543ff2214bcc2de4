-- The proof. `expected` holds every firing that was due, computed apart from the scheduler;
-- `artifact_then` holds the artifacts recorded by then and `file` their files, hashed apart from the worker (artifacts.py).
-- Each line must be 0.

SELECT 'due firings' AS what, count(*) AS n, 'shown' AS must_be FROM expected
UNION ALL
SELECT 'due firings without an occurrence and without a gap', count(*), '0'
  FROM expected e
 WHERE NOT EXISTS (SELECT FROM reports.occurrence o WHERE o.schedule = e.schedule AND o.scheduled_for = e.fire_at)
   AND NOT EXISTS (SELECT FROM reports.schedule_gap g
                    WHERE g.schedule = e.schedule AND e.fire_at BETWEEN g.from_fire_at AND g.to_fire_at)
UNION ALL
SELECT 'due firings that were recorded as gaps', count(*), '0'
  FROM expected e
  JOIN reports.schedule_gap g ON g.schedule = e.schedule AND e.fire_at BETWEEN g.from_fire_at AND g.to_fire_at
UNION ALL
SELECT 'occurrences that nothing called for', count(*), '0'
  FROM reports.occurrence o
 WHERE o.cause <> 'manual' AND o.scheduled_for <= (SELECT until FROM proof_window)
   AND NOT EXISTS (SELECT FROM expected e WHERE e.schedule = o.schedule AND e.fire_at = o.scheduled_for)
UNION ALL
SELECT 'instants with two occurrences of one schedule', count(*), '0'
  FROM (SELECT schedule, scheduled_for FROM reports.occurrence GROUP BY 1, 2 HAVING count(*) > 1) d
UNION ALL
SELECT 'due occurrences without exactly one successful job', count(*), '0'
  FROM expected e
  JOIN reports.occurrence o ON o.schedule = e.schedule AND o.scheduled_for = e.fire_at
 WHERE (SELECT count(*) FROM reports.job j
         WHERE j.schedule = o.schedule AND j.occurrence_key = o.occurrence_key AND j.state = 'succeeded') <> 1
UNION ALL
SELECT 'due occurrences without exactly one artifact', count(*), '0'
  FROM expected e
  JOIN reports.occurrence o ON o.schedule = e.schedule AND o.scheduled_for = e.fire_at
 WHERE (SELECT count(*) FROM reports.artifact a WHERE a.job_id = o.job_id) <> 1
UNION ALL
SELECT 'artifacts whose file is missing or has another size or hash', count(*), '0'
  FROM artifact_then a
  LEFT JOIN file f ON f.path = a.path
 WHERE f.path IS NULL OR f.size_bytes <> a.size_bytes OR f.sha256 <> a.sha256
UNION ALL
SELECT 'occurrences written before they were due', count(*), '0'
  FROM reports.occurrence WHERE planned_at < scheduled_for;
