import { existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import fc from 'fast-check';
import { beforeAll, expect, test } from 'vitest';
import { ROOT } from '../support/millrace.ts';
import { runCount, SEED } from '../support/run-count.ts';
import { History, SINKS, type Table } from './history.ts';
import { Model } from './quint.ts';

/** Histories that are handed to the model. */
const TRACES = runCount({ long: 30 });
const BASE = existsSync('/dev/shm') ? '/dev/shm' : tmpdir();

const anyId = fc.integer({ min: 1, max: 12 });
const anySink = fc.constantFrom(...SINKS);
const anyTable = fc.constantFrom<Table>(
  [['a'], ['b']],
  [['a', 'b'], ['a']],
  [[], ['a', 'b']],
  [['b'], ['a', 'b']],
);

type Step = (history: History) => Promise<void>;
const anySteps: fc.Arbitrary<Step[]> = fc.array(
  fc.oneof(
    {
      weight: 4,
      arbitrary: fc.array(anyId, { minLength: 1, maxLength: 4 }).map((ids) => step((h) => h.accept(ids))),
    },
    {
      weight: 4,
      arbitrary: fc
        .tuple(anySink, fc.integer({ min: 1, max: 5 }))
        .map(([sink, n]) => step((h) => h.deliver(sink, n))),
    },
    { weight: 2, arbitrary: fc.constant(step((h) => h.flush())) },
    { weight: 2, arbitrary: fc.boolean().map((kill) => step((h) => h.restart(kill))) },
    { weight: 1, arbitrary: anyId.map((id) => step((h) => h.acceptAndDie(id))) },
    { weight: 1, arbitrary: anyTable.map((table) => step((h) => h.reroute(table))) },
    { weight: 1, arbitrary: fc.constant(step((h) => h.retain())) },
  ),
  { minLength: 15, maxLength: 30 },
);

function step(run: Step): Step {
  return run;
}

/** One value of a real history changed to what the journal did not do. */
const FALSE = [
  [
    'answers "new" where the journal answered "repeated"',
    'memory.repeated.map(e => e.id) == Set(',
    'memory.repeated.map(e => e.id) == Set(99, ',
  ],
  ['has another cursor', '"a" -> 0', '"a" -> 1'],
] as const;

let histories: readonly (readonly string[])[] = [];
let changed: readonly (readonly string[])[] = [];
let model: Model;
beforeAll(async () => {
  histories = await recorded(TRACES);
  changed = FALSE.map(([, real, other]) => (histories[0] ?? []).map((line) => line.replace(real, other)));
  model = await modelWith({
    real: histories,
    ...Object.fromEntries(changed.map((steps, at) => [`false${at}`, [steps]])),
  });
});

test(`the model can take every step of ${TRACES} histories of the real journal, and sees the same`, async () => {
  expect(histories.flat().filter((line) => line.startsWith('clear(')).length).toBeGreaterThan(TRACES / 10);
  const outcome = await model.passes('real');
  expect(outcome.ok, outcome.text).toBe(true);
});

test.each(FALSE.map(([said], at) => [said, at] as const))(
  'the model refuses a history that %s',
  async (_, at) => {
    expect(changed[at]).not.toEqual(histories[0]);
    const outcome = await model.passes(`false${at}`);
    expect(outcome.ok).toBe(false);
    expect(outcome.text).toContain('Expect condition does not hold');
  },
);

/** Histories in the model's words. */
async function recorded(count: number): Promise<string[][]> {
  const traces: string[][] = [];
  for (const steps of fc.sample(anySteps, { numRuns: count, seed: SEED })) {
    const folder = mkdtempSync(join(BASE, 'millrace-trace-'));
    const history = await History.begin(folder);
    for (const run of steps) await run(history);
    await history.end();
    rmSync(folder, { recursive: true, force: true });
    traces.push(history.steps);
  }
  return traces;
}

/** The model, and beside it a module for each list of histories. */
async function modelWith(modules: Readonly<Record<string, readonly (readonly string[])[]>>): Promise<Model> {
  const journal = readFileSync(join(ROOT, 'src/journal/model/journal.qnt'), 'utf8');
  const instance = /import journal\([^)]*\)\.\*/.exec(journal)?.[0] ?? '';
  const nothing = `action nothing: bool = all {
    disk' = disk, memory' = memory, observer' = observer, running' = running, now' = now }`;
  const written = Object.entries(modules).map(([name, traces]) => {
    const runs = traces.map(
      ([first, ...rest], at) =>
        `  run history${at}Test = ${first}${rest.map((line) => `\n    .then(${line})`).join('')}`,
    );
    return `module ${name} {\n  ${instance}\n  ${nothing}\n${runs.join('\n')}\n}`;
  });
  const folder = mkdtempSync(join(tmpdir(), 'millrace-model-'));
  const file = join(folder, 'trace.qnt');
  writeFileSync(file, [journal, ...written].join('\n'));
  const read = await Model.of(file, false);
  rmSync(folder, { recursive: true, force: true });
  return read;
}
