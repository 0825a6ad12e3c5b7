import fc from 'fast-check';
import { expect, it } from 'vitest';
import { runCount } from '../support/run-count.ts';
import { ExportHistory, USERS, type Kill } from './histories-support.ts';

/** What can happen to an archive and its export. Its text is what a counterexample shows. */
class Command implements fc.AsyncCommand<object, ExportHistory> {
  readonly #name: string;
  readonly #happen: (history: ExportHistory) => unknown;

  constructor(name: string, happen: (history: ExportHistory) => unknown) {
    this.#name = name;
    this.#happen = happen;
  }

  check(): boolean {
    return true;
  }

  async run(_: object, history: ExportHistory): Promise<void> {
    const wrong = await this.#happen(history);
    if (Array.isArray(wrong) && wrong.length > 0) throw new Error(wrong.join('\n'));
  }

  toString(): string {
    return this.#name;
  }
}

const number = fc.nat(20);
const isAgain = fc.integer({ min: 0, max: 5 }).map((n) => n === 0);
const exporting = isAgain.map(
  (again) => new Command(again ? 'export --again' : 'export', (history) => history.export(again)),
);
const following = fc
  .constantFrom('2026-11-21', '2026-11-22', '2026-11-23', '2026-11-24')
  .map((today) => new Command(`follow, on ${today}`, (history) => history.export(false, today)));
const commands = fc.commands(
  [
    fc.integer({ min: 1, max: 6 }).map((n) => new Command(`add ${n}`, (history) => history.add(n))),
    number.map((n) => new Command(`truncate ${n}`, (history) => history.truncate(n))),
    number.map((n) => new Command(`remove ${n}`, (history) => history.remove(n))),
    fc.constant(new Command('restore', (history) => history.restore())),
    fc.nat(USERS - 1).map((n) => new Command(`erase ${n}`, (history) => history.erase(n))),
    fc.constant(new Command('compact', (history) => history.compact())),
    fc
      .constantFrom<Kill>('before its line', 'after its line')
      .chain((at) =>
        isAgain.map(
          (again) =>
            new Command(`kill ${at}${again ? ' --again' : ''}`, (history) => history.kill(at, again)),
        ),
      ),
    exporting,
    exporting,
    following,
    following,
  ],
  { maxCommands: 14 },
);

it('whatever happens to the archive and to the runs, an export that is done has what the archive has', async () => {
  const property = fc.asyncProperty(commands, async (history) => {
    await fc.asyncModelRun(async () => {
      const real = await ExportHistory.begin();
      await real.add(6);
      return { model: {}, real };
    }, history);
  });
  await expect(fc.assert(property, { numRuns: runCount({ quick: 6, long: 30 }) })).resolves.toBeUndefined();
});

it('rows of an erased user go, also when the file that they were taken out of is missing by then', async () => {
  const history = await ExportHistory.begin();
  await history.add(6);
  expect(await history.export(false)).toEqual([]);
  await history.erase(1);
  for (let file = 0; file < 3; file += 1) history.remove(0);
  expect(await history.export(false)).toEqual([]);
  history.restore();
  expect(await history.export(false)).toEqual([]);
});
