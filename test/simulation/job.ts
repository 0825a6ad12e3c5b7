import { obey } from '../support/jobs.ts';
import { characterOf } from './character.ts';
import type { Outcome } from './history.ts';

/** What a process of a run is to do next. */
export interface Order {
  readonly seed: number;
  /** Steps of the operator; left out: as the seed has it. */
  readonly length?: number | undefined;
  /** Whether the fewest steps are looked for with which it fails. */
  readonly shrinks: boolean;
}

/** How a history ended. */
export interface Report extends Pick<Outcome, 'seed' | 'events' | 'tried'> {
  /** Its steps and what was wrong, for a person; empty when all was well. */
  readonly text: string;
}

type RunHistory = (seed: number, length?: number) => Promise<Outcome>;

if (import.meta.main) await work();

/** One history after the other, as they are ordered. */
async function work(): Promise<void> {
  const run = await prepared();
  obey<Report>(async ({ seed, length, shrinks }: Order) => {
    const outcome = await run(seed, length);
    const { events, tried, faults } = outcome;
    if (faults.length === 0) return { seed, events, tried, text: '' };
    const shown = shrinks ? await shrunk(outcome, length ?? characterOf(seed).length, run) : outcome;
    return { seed, events, tried, text: textOf(shown) };
  });
}

/** One history, for a person. */
export async function single(seed: number, length?: number): Promise<string> {
  const run = await prepared();
  return textOf(await run(seed, length));
}

/** The program is loaded with what stands in for the machine. */
async function prepared(): Promise<RunHistory> {
  await import('./hooks.ts');
  const { runHistory } = await import('./history.ts');
  // Thrown into code of a process that has ended.
  process.on('unhandledRejection', (error) => {
    if (!(error instanceof Error && error.name === 'Gone')) throw error;
  });
  return runHistory;
}

/** The shortest history of the same seed that fails: its steps are the same, and it is calm earlier. */
async function shrunk(outcome: Outcome, length: number, run: RunHistory): Promise<Outcome> {
  for (let shorter = 0; shorter < length; shorter += 1) {
    const again = await run(outcome.seed, shorter);
    if (again.faults.length > 0) return again;
  }
  return outcome;
}

function textOf({ steps, faults, ...rest }: Outcome): string {
  const text = faults.length === 0 ? ['nothing is wrong'] : faults;
  return `${[...steps, ...text, JSON.stringify(rest)].join('\n')}\n`;
}
