import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { describe, expect, onTestFinished, test } from 'vitest';
import { ROOT } from '../support/millrace.ts';
import { simulate } from './quint.ts';

/** Walks through each sound model; set MILLRACE_MODEL_RUNS for more. */
const RUNS = Number(process.env['MILLRACE_MODEL_RUNS'] ?? 400);
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
  const file = join(ROOT, `src/journal/model/${name}.qnt`);
  const source = readFileSync(file, 'utf8');
  const invariants = promisesOf(source);

  test(`keeps every invariant in ${RUNS} walks, and they come by what matters`, async () => {
    expect(invariants.length).toBeGreaterThan(4);
    const found = await simulate({ file, main, invariants, witnesses, runs: RUNS, seed: SEED });
    expect(found.broken, found.text).toEqual([]);
    expect(found.held).toBe(true);
    for (const witness of witnesses) expect(found.witnessed.get(witness), witness).toBeGreaterThan(0);
  }, 600_000);

  test.each(defectsOf(source))(
    'is broken by %s',
    async (defect) => {
      const folder = mkdtempSync(join(tmpdir(), 'millrace-model-'));
      onTestFinished(() => rmSync(folder, { recursive: true, force: true }));
      const broken = join(folder, `${name}.qnt`);
      const changed = source.replace(`${defect} = false`, `${defect} = true`);
      expect(changed).not.toBe(source);
      writeFileSync(broken, changed);
      const found = await simulate({ file: broken, main, invariants, runs: PATIENCE, seed: SEED });
      expect(found.held, found.text).toBe(false);
      expect(found.broken).not.toEqual([]);
    },
    600_000,
  );
});

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
