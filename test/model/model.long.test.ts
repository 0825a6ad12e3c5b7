import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { beforeAll, describe, expect, test } from 'vitest';
import { ROOT } from '../support/millrace.ts';
import { runCount } from '../support/run-count.ts';
import { Model } from './quint.ts';

/** Walks through each sound model; a few hundred come by all that matters. */
const RUNS = runCount({ long: 3000 });
/** A broken one is found long before. */
const PATIENCE = 20_000;
const SEED = 1;

const MODELS = [
  {
    name: 'journal',
    main: 'sound',
    witnesses: ['deliveredAfterCrash', 'repeatedAfterCrash', 'erasedAndReloaded', 'clearedAndRepeated'],
  },
  { name: 'fleet', main: 'soundFleet', witnesses: ['sentTwice', 'skippedByHeir'] },
];

describe.each(MODELS)('the model of the $name', ({ name, main, witnesses }) => {
  const source = readFileSync(join(ROOT, `src/journal/model/${name}.qnt`), 'utf8');
  const invariants = promisesOf(source);
  const defects = defectsOf(source);
  let model: Model;
  beforeAll(async () => {
    const folder = mkdtempSync(join(tmpdir(), 'millrace-model-'));
    const file = join(folder, `${name}.qnt`);
    const broken = defects.map((defect) => brokenBy(defect, moduleOf(source, main), main));
    writeFileSync(file, [source, ...broken].join('\n'));
    model = await Model.of(file);
    rmSync(folder, { recursive: true, force: true });
  });

  test(`keeps every invariant in ${RUNS} walks, and they come by what matters`, async () => {
    expect(invariants.length).toBeGreaterThan(4);
    const found = await model.simulate({ main, invariants, witnesses, runs: RUNS, seed: SEED });
    expect(found.broken, found.text).toEqual([]);
    expect(found.held).toBe(true);
    for (const witness of witnesses) expect(found.witnessed.get(witness), witness).toBeGreaterThan(0);
  });

  test.each(defects)(
    'is broken by %s',
    async (defect) => {
      const found = await model.simulate({ main: defect, invariants, runs: PATIENCE, seed: SEED });
      expect(found.held, found.text).toBe(false);
      expect(found.broken).not.toEqual([]);
    },
    600_000,
  );
});

/** The module that says of what the model is made. */
function moduleOf(source: string, name: string): string {
  const [found] = new RegExp(`^module ${name} \\{[^}]*\\}`, 'm').exec(source) ?? [];
  return found ?? expect.unreachable(`no module ${name}`);
}

/** The same module with one defect, by whose name it is called. */
function brokenBy(defect: string, sound: string, name: string): string {
  const changed = sound.replace(`${defect} = false`, `${defect} = true`);
  expect(changed).not.toBe(sound);
  return changed.replace(`module ${name} `, `module ${defect} `);
}

/** What a careless journal does: the model's constants. */
function defectsOf(source: string): string[] {
  return [...source.matchAll(/^ {2}const (\w+): bool$/gm)].map(([, name]) => name ?? '');
}

/** What `promise` is made of. */
function promisesOf(source: string): string[] {
  const [, names = ''] = /val promise: bool = and \{([^}]*)\}/.exec(source) ?? [];
  return names
    .split(',')
    .map((name) => name.trim())
    .filter((name) => name !== '');
}
