import type { Envelope } from 'millrace/events';
import {
  DELIVERED,
  parseBytes,
  parseDuration,
  type Delivery,
  type SendResult,
  type Sink,
  type SinkContext,
  type SinkLimits,
  type SinkModule,
} from 'millrace/sink';
import { sinkContract, type Arrived, type ContractSubject } from 'millrace/sink-contract';

/** A sink as somebody writes it who has the package only: this file is compiled and run beside the installed one. */
interface Options {
  readonly delay: number;
}

const arrived: Arrived[] = [];

class MemorySink implements Sink {
  readonly limits: SinkLimits = {
    batchCount: 100,
    batchBytes: parseBytes('4MiB'),
    eventBytes: parseBytes('1MiB'),
    inFlight: 2,
    order: 'user',
    batchBy: 'mixed',
  };
  readonly #name: string;
  readonly #delay: number;

  constructor({ delay }: Options, { name }: Pick<SinkContext, 'name'>) {
    this.#name = name;
    this.#delay = delay;
  }

  async open(): Promise<void> {}

  async send(batch: readonly Delivery[], signal: AbortSignal): Promise<SendResult[]> {
    signal.throwIfAborted();
    await new Promise((resolve) => setTimeout(resolve, this.#delay));
    return batch.map(({ event, destination }) => {
      if (isStrange(event)) return { status: 'refused', code: 'strange', reason: `not for ${this.#name}` };
      arrived.push({ id: event.id, destination, body: Buffer.from(event.body) });
      return DELIVERED;
    });
  }

  async close(): Promise<void> {}
}

function isStrange({ type }: Envelope): boolean {
  return type.includes('\u0000');
}

export const module: SinkModule<Options> = {
  parseOptions: (options) => ({ delay: parseDuration(String(Object(options).delay ?? '1ms')) }),
  createSink: (options, context) => new MemorySink(options, context),
};

async function makeSubject(): Promise<ContractSubject> {
  arrived.length = 0;
  const sink = new MemorySink(module.parseOptions({ delay: '2ms' }), { name: 'memory' });
  return {
    sink,
    destinations: ['a', 'b'],
    arrived: () => Promise.resolve([...arrived]),
    outage: { impossible: 'memory is always there' },
    dispose: () => Promise.resolve(),
  };
}

/** Runs the contract; resolves with the names of what passed. */
export async function runContract(): Promise<string[]> {
  const passed: string[] = [];
  for (const { name, skip, run } of await sinkContract(makeSubject)) {
    if (skip !== undefined) continue;
    await run();
    passed.push(name);
  }
  return passed;
}
