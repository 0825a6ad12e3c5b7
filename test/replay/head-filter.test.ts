import fc from 'fast-check';
import { expect, test } from 'vitest';
import { formatRecords, parseRecord } from '../../src/core/archive-record.ts';
import { passesOverBy } from '../../src/replay/head-filter.ts';
import { compileSelection, type Selection } from '../../src/replay/selection.ts';
import { makeEvent, TEAM, USER } from '../support/events.ts';
import { ALL } from './support.ts';

const NOON = Date.UTC(2026, 10, 21, 12);

function lineOf(event: Parameters<typeof makeEvent>[0]): Buffer {
  return formatRecords([makeEvent(event)]).subarray(0, -1);
}

const passesOver = (selection: Partial<Selection>, line: Buffer): boolean =>
  passesOverBy({ ...ALL, ...selection })(line);

test('what a selection takes is never passed over, whatever stands in the fields', () => {
  const id = fc.oneof(fc.constantFrom(TEAM, USER, USER.toUpperCase(), 'a', 'ab', ''), fc.string());
  const type = fc.oneof(fc.constantFrom('daily.data.meal.created', 'labtest.', 'lab', 'x'), fc.string());
  const time = fc.constantFrom(NOON - 1, NOON, NOON + 1);
  const selection = fc.record({
    types: fc.array(type, { maxLength: 2 }),
    teams: fc.array(id, { maxLength: 2 }),
    users: fc.array(id, { maxLength: 2 }),
    since: fc.option(time),
    until: fc.option(time),
  });
  const event = fc.record({
    id,
    source: fc.string(),
    type,
    team: fc.option(id),
    user: fc.option(id),
    receivedAt: time,
  });
  let passed = 0;
  fc.assert(
    fc.property(selection, event, (wanted, fields) => {
      const line = lineOf(fields);
      const parsed = parseRecord(line);
      if (!parsed.ok) throw new Error(parsed.reason);
      const { event_type, team_id: team, user_id: user } = parsed.record;
      const envelope = { type: event_type, team, user, clientUser: null };
      const match = compileSelection(wanted)(envelope, fields.receivedAt);
      if (!passesOver(wanted, line)) return true;
      passed += 1;
      return match === 'no';
    }),
    { numRuns: 3000 },
  );
  expect(passed).toBeGreaterThan(300);
});

test('each field alone decides', () => {
  const line = lineOf({ type: 'daily.data.meal.created', team: TEAM, user: USER, receivedAt: NOON });
  const takes: Partial<Selection>[] = [
    {},
    { types: ['lab', 'daily.data.'] },
    { teams: ['other', TEAM.toUpperCase()] },
    { users: [USER] },
    { since: NOON, until: NOON + 1 },
  ];
  const passes: Partial<Selection>[] = [
    { types: ['daily.data.meal.created.'] },
    { teams: [USER] },
    { users: [TEAM] },
    { since: NOON + 1 },
    { until: NOON },
  ];
  expect(takes.map((selection) => passesOver(selection, line))).toEqual(takes.map(() => false));
  expect(passes.map((selection) => passesOver(selection, line))).toEqual(passes.map(() => true));
  expect(passesOver({ users: [USER] }, lineOf({ user: null }))).toBe(true);
  expect(passesOver({ teams: [TEAM] }, lineOf({ team: null }))).toBe(true);
});

test('a line that is cut short, or is no record, is left to the parser', () => {
  const line = lineOf({});
  for (let length = 0; length < line.length; length += 1) {
    const cut = line.subarray(0, length);
    // Where the cut leaves a closing brace at the end, the head is whole, and it is the record's own.
    if (cut.at(-1) !== 125) expect(passesOver({ types: ['nothing'] }, cut)).toBe(false);
  }
  for (const text of ['', '{}', '{"event_type":"x"}', '[{"id":"a"}]']) {
    expect(passesOver({ types: ['nothing'] }, Buffer.from(text))).toBe(false);
  }
});
