import { onTestFinished } from 'vitest';
import { type Inside, type RunOptions, runInside } from './millrace.ts';
import { type Exit, Serving } from './serving.ts';

interface ReceiverOptions extends Pick<RunOptions, 'env'> {
  /** More of the command line. */
  readonly args?: readonly string[];
}

/**
 * `millrace serve` inside the test: a process of its own takes longer to start than most tests need. `ReceiverProcess` is for
 * what only a process does. It stops when the test ends.
 */
export class Receiver extends Serving {
  readonly #run: Inside;
  readonly exited: Promise<Exit>;

  /** Starts one and returns at once. */
  constructor(config: string, options: ReceiverOptions = {}) {
    super(config);
    this.#run = runInside(
      ['serve', '--config', config, ...(options.args ?? [])],
      options,
      (name, text) => (this[name] += text),
    );
    this.exited = this.#run.exited.then((code) => ({ code, signal: null }));
    onTestFinished(async () => {
      await this.kill('SIGTERM');
    });
  }

  /** Starts one and returns once it listens. */
  static async start(config: string, options: ReceiverOptions = {}): Promise<Receiver> {
    const receiver = new Receiver(config, options);
    await receiver.listening();
    return receiver;
  }

  /** As the process would take it. */
  signal(signal: NodeJS.Signals): void {
    if (signal === 'SIGTERM') this.#run.stop.abort();
    else if (signal === 'SIGHUP') this.#run.hangUp();
    else throw new Error(`${signal} is for a ReceiverProcess`);
  }
}
