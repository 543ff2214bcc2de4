// Peers of bench/next in JavaScript: croner, cron-parser, rrule. Prints `peer figure rate` by
// processor time.
//
// Usage: node next.mjs SECONDS      (of each figure)
import { CronExpressionParser } from "cron-parser";
import { Cron } from "croner";
import rrule from "rrule";

const seconds = Number(process.argv[2]);
const low = Date.UTC(2020, 0, 1);
const high = Date.UTC(2040, 0, 1);
let state = 20261130;
const instants = Array.from({ length: 4096 }, () => {
  state = (Math.imul(state, 1664525) + 1013904223) >>> 0;
  return new Date(low + Math.floor((state / 2 ** 32) * ((high - low) / 1000)) * 1000);
});

const cpu = () => {
  const used = process.cpuUsage();
  return (used.user + used.system) / 1e6;
};

function rate(peer, figure, call) {
  const begin = cpu();
  let count = 0;
  while (cpu() - begin < seconds) {
    for (let i = 0; i < 16; i++) call(count++);
  }
  console.log(peer, figure, Math.round(count / (cpu() - begin)));
}

const zone = "America/New_York";
const texts = ["30 9 * * 1-5", "*/15 8-18 * * MON-FRI", "0 0 1 */3 *"];
const cron = new Cron("30 9 * * 1-5", { timezone: zone, paused: true });
rate("croner", "weekday_new_york", (i) => cron.nextRun(instants[i % 4096]));
rate("croner", "parse", (i) => new Cron(texts[i % 3], { timezone: zone, paused: true }));
const parsed = CronExpressionParser.parse("30 9 * * 1-5", { tz: zone });
rate("cron-parser", "weekday_new_york", (i) => {
  parsed.reset(instants[i % 4096]);
  parsed.next();
});
rate("cron-parser", "parse", (i) => CronExpressionParser.parse(texts[i % 3], { tz: zone }));
for (const [figure, text] of [
  ["rrule_weekly", "FREQ=WEEKLY;BYDAY=MO,WE,FR"],
  ["rrule_monthly", "FREQ=MONTHLY;BYDAY=-1FR"],
]) {
  const rule = rrule.rrulestr(`DTSTART:20190107T093000Z\nRRULE:${text}`, { cache: false });
  rate("rrule.js", figure, (i) => rule.after(instants[i % 4096]));
}
