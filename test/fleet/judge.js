// Judges the histories of a fleet; shares no code with the product, nor with what made them.
// node judge.js FOLDER. In the folder, as JSON lines: sent [id, user, number]; acknowledged, the same, of what was answered with
// 2xx, each user in the order of sending; sink-<name> [id, user, pid, ms] of each that a sink was given, in that order;
// faults [from, to, what, pid or null].
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';

const [folder] = process.argv.slice(2);
const lines = (name) =>
  readFileSync(join(folder, name), 'utf8')
    .split('\n')
    .filter((line) => line !== '')
    .map((line) => JSON.parse(line));

// What one fault may have forwarded again of what one process had sent to a sink: the 200 after which it stops when it cannot note
// what is confirmed (docs/fleet.md), and four batches of 5 in flight, of which one may have ended as it was counted.
const MOST_REPEATED = 225;
// Milliseconds before a fault in which what was sent may not have been confirmed or noted yet, and how long it may linger.
const [BEFORE, AFTER] = [3000, 20_000];

const wrong = [];
const acknowledged = lines('acknowledged.jsonl');
const faults = lines('faults.jsonl').map(([from, to, what, pid]) => ({
  from,
  to,
  what,
  pid,
  repeated: new Map(),
}));
const order = Map.groupBy(acknowledged, ([, user]) => user);
const sent = new Set(lines('sent.jsonl').map(([id]) => id));
let twice = 0;
// A fault that can explain why what one has sent comes again from the other, and has not explained too much yet: that of a broker
// can have hit several processes.
const causeOf = (one, other) =>
  faults.find(({ pid, from, to, repeated }) => {
    const isNear = from <= other.at + 1000 && to >= one.at - BEFORE && from - one.at <= AFTER;
    const isItsOwn = pid === null || pid === one.pid || pid === other.pid;
    return isNear && isItsOwn && (repeated.get(one.pid) ?? 0) < MOST_REPEATED;
  });
const sinks = readdirSync(folder).filter((name) => name.startsWith('sink-'));
for (const name of sinks) {
  const first = new Map();
  const last = new Map();
  for (const { repeated } of faults) repeated.clear();
  for (const [index, [id, , pid, at]] of lines(name).entries()) {
    if (!sent.has(id)) wrong.push(`${name}: ${id} was never sent`);
    const before = last.get(id);
    last.set(id, { pid, at });
    if (before === undefined) {
      first.set(id, index);
      continue;
    }
    twice += 1;
    const fault = causeOf(before, { pid, at });
    if (fault === undefined)
      wrong.push(`${name}: ${id} was forwarded again by ${pid}, and no fault explains it, or no more of it`);
    else fault.repeated.set(before.pid, (fault.repeated.get(before.pid) ?? 0) + 1);
  }
  for (const [user, events] of order) {
    let latest = -1;
    for (const [id] of events) {
      const at = first.get(id);
      if (at === undefined) wrong.push(`${name}: ${id} was answered with 2xx and is not there`);
      else if (at < latest) wrong.push(`${name}: ${id} of ${user} came before one that was sent earlier`);
      else latest = at;
    }
  }
}
const result = { acknowledged: acknowledged.length, sinks: sinks.length, faults: faults.length, twice };
console.log(JSON.stringify({ ...result, wrong: wrong.length, first: wrong.slice(0, 8) }));
process.exitCode = wrong.length === 0 ? 0 : 1;
