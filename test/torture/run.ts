import { runJobs } from '../support/jobs.ts';
import { NOTHING, type Counts, type Failure, type Order, type Report } from './job.ts';

export interface Options extends Pick<Order, 'kept' | 'only' | 'perPoint'> {
  readonly seed: number;
  readonly states: number;
  readonly minutes: number;
  readonly jobs: number;
}

/** Tries states of history after history. @returns the exit code, and what was tried, for a person */
export async function torture(
  { seed, states, minutes, jobs, ...rest }: Options,
  base: string,
): Promise<{ readonly code: number; readonly line: string }> {
  const started = performance.now();
  const counts = { ...NOTHING };
  const failures: Failure[] = [];
  const died: number[] = [];
  let given = 0;
  const line = (): string => {
    const seconds = (performance.now() - started) / 1000;
    return [
      `${counts.histories} recorded histories`,
      `${counts.points} crash points`,
      `${counts.states} states (${(counts.states / seconds).toFixed(1)} a second)`,
      `${counts.recoveries} recoveries`,
      `${counts.failed} failed`,
    ].join(', ');
  };
  await runJobs<Order, Report>({
    job: new URL('job.ts', import.meta.url),
    jobs: rest.kept === undefined ? jobs : 1,
    minutes,
    next: () => {
      given += 1;
      if (rest.kept !== undefined && given > 1) return null;
      return { seed: seed + given - 1, base, ...rest };
    },
    heard: ({ counts: more, at, failure }) => {
      for (const [name, count] of Object.entries(more)) counts[name as keyof Counts] += count;
      if (failure !== undefined) {
        failures.push(failure);
        tellFailure(failure);
      }
      note(`${line()} (history and state ${at})`);
      return rest.kept === undefined && counts.states >= states;
    },
    died: (order, code) => {
      died.push(order.seed);
      note(`seed ${order.seed}: its process ended with ${code}`);
    },
  });
  for (const { seed: own, state, folder } of failures)
    if (state !== null)
      note(`failed: seed ${own}, state ${state}: npm run torture -- --history ${folder} --only ${state}`);
  const found = [
    ...failures.map(
      ({ seed: own, state }) => `${own} (${state === null ? 'not recorded' : `state ${state}`})`,
    ),
    ...died.map((own) => `${own} (its process ended)`),
  ];
  const text = found.length === 0 ? '' : `: seeds ${found.join(', ')}`;
  return { code: found.length === 0 ? 0 : 1, line: `${line()}${text}; seeds from ${seed}` };
}

function tellFailure({ seed, state, faults, lost }: Failure): void {
  note(`seed ${seed}, ${state === null ? 'no state' : `state ${state}`}:`);
  for (const fault of faults.slice(0, 5)) note(`  ${fault}`);
  if (state === null) return;
  note(`  when this is lost, and nothing else:`);
  for (const text of lost.slice(0, 20)) note(`    ${text}`);
}

function note(line: string): void {
  process.stderr.write(`${line}\n`);
}
