import { execFileSync, spawnSync } from 'node:child_process';
import { mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { madeUpEvent } from '../../src/sandbox/made-up-events.ts';
import { reportOf } from '../../src/observe/schema/report.ts';
import { Learner } from '../observe/schema/support.ts';
import { makeEvent } from '../support/events.ts';
import { temporaryFolder } from '../support/folders.ts';
import { millrace, ROOT } from '../support/millrace.ts';

/** Names that languages have for themselves, kinds that vary, maps, empty arrays, nulls. */
const ODD = {
  class: 'a',
  type: 1,
  def: null,
  range: [],
  interface: { func: [1, 2.5, null], map: { 'Chicken breast': 1, 'Boiled egg': { n: 1 } } },
  either: 'text',
  __proto__x: true,
  from_dict: 1,
  list: [[{ a: 1 }]],
  // Names beside such as are data.
  labs: { id: 'x', VO2Max: 41.5, unit: 'ml' },
  days: { total: 3, '2026-11-21': 1, '2026-11-22': { n: 2 } },
  strange: { '': 1, 'a"b': true, 'a/b*~': null, '../x': [1], plain: 'y', $ref: 'z', '😀': 2 },
};

/** What `millrace schema --json` writes of made-up events, as a file, and the events. */
async function seen() {
  const folder = await temporaryFolder();
  const learner = new Learner();
  const bodies = Array.from({ length: 300 }, (_, n) => madeUpEvent(n));
  const odd = [ODD, { ...ODD, either: 2, type: 1.5, def: null }, { only: 1 }].map((data) =>
    Buffer.from(JSON.stringify({ event_type: 'odd.one', data })),
  );
  for (const { body } of bodies) {
    const { event_type: type } = JSON.parse(body.toString()) as { event_type: string };
    learner.see(makeEvent({ type, body }));
  }
  for (const body of odd) for (const type of ['odd.one', 'odd_one']) learner.see(makeEvent({ type, body }));
  const from = join(folder, 'seen.json');
  writeFileSync(from, JSON.stringify(reportOf(learner.memory, true)));
  return { folder, from, bodies, odd };
}

const has = (command: string, ...args: string[]) => spawnSync(command, args).status === 0;
const GO = ['go', '/usr/local/go/bin/go'].find((command) => has(command, 'version'));
const PYTHON = ['python3', 'python'].find((command) => has(command, '--version'));

/** Writes the code, and reads it. */
async function write(language: string, from: string, file: string): Promise<string> {
  const { code, stderr } = await millrace(['types', language, '--from', from, '--out', file]);
  expect({ code, stderr }).toMatchObject({ code: 0 });
  return readFileSync(file, 'utf8');
}

test('types of TypeScript compile, and take the events they are made of', async () => {
  const { folder, from, bodies, odd } = await seen();
  const file = join(folder, 'events.ts');
  expect(await write('ts', from, file)).toMatch(/^export interface DailyDataMealCreated \{$/m);
  const meal = bodies.find(({ body }) => body.includes('daily.data.meal.created'))?.body.toString() ?? '';
  // The compiler checks literals most strictly: each member must be there.
  const uses = [
    `import type { DailyDataMealCreated, OddOne } from './events';`,
    `export const meal: DailyDataMealCreated = ${meal};`,
    ...odd.map((body, n) => `export const odd${n}: OddOne = ${body.toString()};`),
  ];
  writeFileSync(join(folder, 'uses.ts'), uses.join('\n'));
  writeFileSync(
    join(folder, 'tsconfig.json'),
    '{"compilerOptions":{"strict":true,"noEmit":true,"types":[]},"include":["*.ts"]}',
  );
  const tsc = join(ROOT, 'node_modules/.bin/tsc');
  const { status, stdout } = spawnSync(tsc, ['-p', folder], { encoding: 'utf8' });
  expect({ status, stdout }).toEqual({ status: 0, stdout: '' });
});

test.skipIf(PYTHON === undefined)(
  `classes of Python are loaded, and read the events (skipped without python3)`,
  async () => {
    const { folder, from, bodies, odd } = await seen();
    await write('python', from, join(folder, 'events.py'));
    const texts = [...bodies.map(({ body }) => body.toString()), ...odd.map(String)];
    writeFileSync(join(folder, 'events.json'), `[${texts.join(',')}]`);
    const program = `
import json, events
names = {n.lower(): getattr(events, n) for n in dir(events) if hasattr(getattr(events, n), 'from_dict')}
for event in json.load(open('events.json')):
    read = names[event['event_type'].replace('.', '').replace('_', '')].from_dict(event)
    again = read.to_dict()
    assert again['event_type'] == event['event_type']
    if 'team_id' in event: assert again == event, (again, event)
print('read', len(json.load(open('events.json'))))
`;
    const ran = spawnSync(PYTHON ?? '', ['-B', '-c', program], { cwd: folder, encoding: 'utf8' });
    expect(ran).toMatchObject({ status: 0, stdout: `read ${texts.length}\n`, stderr: '' });
  },
);

test.skipIf(GO === undefined)(
  'types of Go pass vet, and read the events (skipped without go)',
  async () => {
    const { folder, from, bodies } = await seen();
    mkdirSync(join(folder, 'events'));
    await write('go', from, join(folder, 'events', 'events.go'));
    writeFileSync(join(folder, 'go.mod'), 'module example.org/made-up\n\ngo 1.20\n');
    const meal = bodies.find(({ body }) => body.includes('daily.data.meal.created'))?.body.toString() ?? '';
    writeFileSync(
      join(folder, 'main.go'),
      `package main

import "example.org/made-up/events"

func main() {
	read, err := events.UnmarshalDailyDataMealCreated([]byte(${JSON.stringify(meal)}))
	if err != nil {
		panic(err)
	}
	println(read.EventType)
}
`,
    );
    // With an empty cache Go compiles its own library first, which takes half a minute.
    const env = { ...process.env, GOFLAGS: '-mod=mod' };
    execFileSync(GO ?? '', ['vet', './...'], { cwd: folder, env });
    const { stderr } = spawnSync(GO ?? '', ['run', '.'], { cwd: folder, env, encoding: 'utf8' });
    expect(stderr).toBe('daily.data.meal.created\n');
  },
  120_000,
);

test('what was never seen makes no types, and says so', async () => {
  const { from } = await seen();
  const { code, stderr } = await millrace(['types', 'ts', 'no.such', '--from', from]);
  expect({ code, stderr }).toMatchObject({
    code: 2,
    stderr: expect.stringContaining('no event of a type no.such was seen'),
  });
});
