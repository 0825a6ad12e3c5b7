import { expect, test } from 'vitest';
import { RefusalLog } from '../../../src/observe/metrics/refusal-log.ts';
import { Refusals } from '../../../src/observe/metrics/refusals.ts';
import { ManualClock, MINUTE } from '../../support/manual-clock.ts';

test('refusals are counted by reason for an hour, the most frequent first', () => {
  let now = 0;
  const refusals = new Refusals({ monotonic: () => now, now: () => 1e12 + now });
  for (let minute = 0; minute < 90; minute += 1) {
    now = minute * 60_000;
    refusals.add('signature_invalid');
    if (minute % 2 === 0) refusals.add('timestamp_too_old');
  }
  expect(Object.entries(refusals.lastHour())).toEqual([
    ['signature_invalid', 60],
    ['timestamp_too_old', 30],
  ]);
  now += 45 * 60_000;
  expect(refusals.lastHour()).toEqual({ signature_invalid: 15, timestamp_too_old: 7 });
  now += 60 * 60_000;
  expect(refusals.lastHour()).toEqual({});
});

test('in the first hour after a start they are counted since the start, and that is said', () => {
  let now = 5000;
  const refusals = new Refusals({ monotonic: () => now, now: () => 1e12 });
  expect([refusals.since(), refusals.last]).toEqual([1e12, null]);
  refusals.add('signature_invalid');
  expect(refusals.last).toBe(1e12);
  now += 3_600_000;
  expect(refusals.since()).toBeNull();
});

test('the log says at once that deliveries are refused, then one line a minute with counts and the reason', async () => {
  const clock = new ManualClock();
  const lines: object[] = [];
  const log = new RefusalLog(clock, { warn: (fields) => lines.push(fields) });
  for (let n = 0; n < 1000; n += 1) log.add('signature_invalid', 'no signature matches any secret');
  log.add('timestamp_too_old', 'signed too long ago');
  log.add('not_found', 'there is nothing at this path');
  expect(lines).toEqual([
    {
      refused: 1,
      codes: { signature_invalid: 1 },
      last: 'no signature matches any secret',
      advice: [expect.stringContaining('the secret was changed at the service')],
    },
  ]);
  clock.advance(MINUTE);
  expect(lines.slice(1)).toEqual([
    {
      refused: 1000,
      codes: { signature_invalid: 999, timestamp_too_old: 1 },
      last: 'signed too long ago',
      advice: [
        expect.stringContaining('the secret was changed at the service'),
        expect.stringContaining('set the clock of this machine'),
      ],
    },
  ]);
  // A minute without any is silent, and the next one is logged at once again.
  clock.advance(MINUTE);
  expect([lines.length, clock.pending]).toEqual([2, 0]);
  log.add('signature_missing', 'needs webhook-id');
  log.add('signature_missing', 'needs webhook-id');
  expect(lines).toHaveLength(3);
  await log.stop();
  expect(lines.at(-1)).toMatchObject({ refused: 1, codes: { signature_missing: 1 } });
  expect(clock.pending).toBe(0);
});
