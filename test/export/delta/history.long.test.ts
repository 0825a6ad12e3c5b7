import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import type { JournalEvent } from '../../../src/core/event.ts';
import { erasuresOver, folderStore } from '../../privacy/erase/support.ts';
import { archive, exported, mealEvent, mealOf } from '../support.ts';
import { temporaryFolder } from '../../support/folders.ts';
import { seededRandom } from '../../support/random.ts';
import { skipped } from '../../support/requirements.ts';
import { runCount } from '../../support/run-count.ts';
import { deltalake, lacksDeltalake } from './deltalake.ts';

const RUNS = runCount({ long: 2 });
const STEPS = 12;
const lacks = lacksDeltalake();

/**
 * Random histories of a table: events come, exports run and are cut off, all is exported again, users are erased, and another
 * program appends, checkpoints and deletes its own rows. An oracle of ids says what has to be there.
 */
describe.skipIf(lacks !== null)(`histories of a Delta table${skipped(lacks)}`, () => {
  const ask = deltalake();
  it.each(Array.from({ length: RUNS }, (_, n) => n + 1))('history %i', async (seed) => {
    const random = seededRandom(seed);
    const [path, out] = [await temporaryFolder(), await temporaryFolder()];
    const table = join(out, 'meals');
    /** User by id of the row: in the archive, in the table by export, in the table by others. */
    const archived = new Map<string, string>();
    let ours = new Map<string, string>();
    const theirs = new Map<string, string>();
    const doneSteps: string[] = [];
    let next = 0;
    const add = async (): Promise<void> => {
      const events: JournalEvent[] = Array.from({ length: 1 + Math.floor(random() * 5) }, () =>
        mealEvent((next += 1)),
      );
      await archive(path, events);
      for (let n = next - events.length + 1; n <= next; n += 1) archived.set(mealOf(n).id, `user-${n % 7}`);
    };
    const run = async (more: object = {}): Promise<void> => {
      await exported([path], out, { format: 'delta', table: 'meals', stepBytes: 2000, ...more });
      ours = new Map(archived);
    };
    const steps: Record<string, () => Promise<unknown>> = {
      add,
      export: () => run(),
      again: () => run({ again: true }),
      cut: async () => {
        const abort = new AbortController();
        const onProgress = ({ done }: { done: number }): void => void (done >= 1 && abort.abort());
        await exported([path], out, {
          format: 'delta',
          table: 'meals',
          stepBytes: 1,
          signal: abort.signal,
          onProgress,
        });
        await run();
      },
      append: async () => {
        const id = `theirs-${(next += 1)}`;
        const user = `user-${next % 7}`;
        await ask('append', table, { rows: [{ id, user_id: user }] });
        theirs.set(id, user);
      },
      checkpoint: () => ask('checkpoint', table),
      erase: async () => {
        const user = `user-${Math.floor(random() * 7)}`;
        const { erasures } = erasuresOver(await temporaryFolder(), [folderStore(path), folderStore(out)]);
        await erasures.request({ by: 'user', id: user, team: null }, true);
        expect((await erasures.run()).left).toEqual([]);
        for (const rows of [archived, ours, theirs])
          for (const [id, of] of rows) if (of === user) rows.delete(id);
      },
    };
    await add();
    await run();
    for (let n = 0; n < STEPS; n += 1) {
      const name = Object.keys(steps)[Math.floor(random() * Object.keys(steps).length)] as string;
      doneSteps.push(name);
      await steps[name]?.();
      const { rows } = await ask<{ rows: [string][] }>('rows', table, { columns: ['id'] });
      expect(rows.map(([id]) => id).sort(inOrder), doneSteps.join(', ')).toEqual(
        [...ours.keys(), ...theirs.keys()].sort(inOrder),
      );
    }
  });
});

function inOrder(a: string, b: string): number {
  return a < b ? -1 : 1;
}
