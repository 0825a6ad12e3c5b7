import { onTestFinished } from 'vitest';
import type { RunOptions } from './millrace.ts';
import { ServeProcess } from './serve-process.ts';

/** A receiver of the running test's own; killed when the test ends, whatever became of it. */
export class ReceiverProcess extends ServeProcess {
  /** Starts one and returns at once. */
  constructor(config: string, options: RunOptions = {}) {
    super(config, options);
    onTestFinished(async () => {
      await this.kill('SIGKILL');
    });
  }

  /** Starts one and returns once it listens. */
  static async start(config: string, options: RunOptions = {}): Promise<ReceiverProcess> {
    const receiver = new ReceiverProcess(config, options);
    await receiver.listening();
    return receiver;
  }
}
