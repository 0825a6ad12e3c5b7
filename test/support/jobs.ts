import { fork, type ChildProcess } from 'node:child_process';
import { once } from 'node:events';

/** What a job reports of its current order; more follows unless it is over. */
interface Message<Report> {
  readonly report: Report;
  readonly isOver: boolean;
}

interface JobsOptions<Order, Report> {
  /** The program of each process, which calls `obey`. */
  readonly job: URL;
  readonly jobs: number;
  readonly minutes: number;
  /** Null when there is none left. */
  readonly next: () => Order | null;
  /** @returns true when all that was wanted is done */
  readonly heard: (report: Report) => boolean;
  /** A process has ended instead of finishing its order. */
  readonly died: (order: Order, code: number | null) => void;
}

/** A process is exchanged after so many orders: each leaves a little behind. */
const ORDERS_A_PROCESS = 4000;
/** The longest that a timer waits. */
const LONGEST_MINUTES = 24 * 24 * 60;

/** Has orders carried out by several processes, each one order after the other, until there is enough, or a signal. */
export async function runJobs<Order extends object, Report>(
  options: JobsOptions<Order, Report>,
): Promise<void> {
  const { job, jobs, minutes, next, heard, died } = options;
  const over = Promise.withResolvers<null>();
  const state = { isOver: false };
  const end = (): void => over.resolve(((state.isOver = true), null));
  const timer = setTimeout(end, Math.min(minutes, LONGEST_MINUTES) * 60_000);
  for (const name of ['SIGINT', 'SIGTERM'] as const) process.once(name, end);
  const carryOut = async (child: ChildProcess, order: Order): Promise<void> => {
    const exited = Promise.withResolvers<void>();
    const hear = ({ report, isOver }: Message<Report>): void => {
      if (state.isOver) return;
      if (heard(report)) end();
      if (isOver) exited.resolve();
    };
    const die = (code: number | null): void => {
      if (!state.isOver) died(order, code);
      exited.resolve();
    };
    child.on('message', hear).once('exit', die);
    child.send(order);
    await Promise.race([exited.promise, over.promise]);
    child.off('message', hear).off('exit', die);
  };
  const work = async (): Promise<void> => {
    for (let order = next(); order !== null && !state.isOver;) {
      const child = fork(job, { detached: true, execArgv: [] });
      const exit = once(child, 'exit');
      for (let done = 0; order !== null && child.connected && done < ORDERS_A_PROCESS; done += 1) {
        await carryOut(child, order);
        order = state.isOver ? null : next();
      }
      // What was being done then has no result.
      if (child.connected) child.disconnect();
      await exit;
      killGroup(child.pid);
    }
  };
  await Promise.all(Array.from({ length: jobs }, work));
  clearTimeout(timer);
}

/** What it had started is of its group. */
function killGroup(leader: number | undefined): void {
  try {
    if (leader !== undefined) process.kill(-leader, 'SIGKILL');
  } catch {
    // It had no order left.
  }
}

/**
 * Makes this process one that carries out orders.
 * @param work tells how far it is, and returns what it tells last
 */
export function obey<Report>(work: (order: never, tell: (report: Report) => void) => Promise<Report>): void {
  const send = (message: Message<Report>): void => void process.send?.(message);
  process.on('message', (order) => {
    work(order as never, (report) => send({ report, isOver: false })).then(
      (report) => send({ report, isOver: true }),
      (error: unknown) => {
        process.stderr.write(`${(error as Error).stack}\n`);
        process.exit(1);
      },
    );
  });
  // The parent is gone, or has enough.
  process.on('disconnect', () => process.exit(0));
  process.on('SIGINT', () => undefined);
}
