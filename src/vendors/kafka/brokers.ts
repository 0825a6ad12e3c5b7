import type { API, Base, Connection as Socket } from '@platformatic/kafka';
import { NEVER, within } from '../../lib/abort.ts';
import { clientOptions, quiet, type Connection } from './connection.ts';

export type Kafka = typeof import('@platformatic/kafka');

/** The package, and its connections to one cluster. */
interface Opened {
  readonly kafka: Kafka;
  readonly base: Base;
}

/** The brokers of a cluster. Uses the package's connections, metadata and encodings, and none of its clients. */
export class Brokers {
  readonly #connection: Connection;
  readonly #timeout: number;
  readonly #requestTimeout: number;
  #opened: Promise<Opened> | null = null;

  /**
   * Loads and connects nothing yet.
   * @param timeout of what is looked up here, milliseconds
   * @param requestTimeout of one request on a connection, milliseconds
   */
  constructor(connection: Connection, timeout: number, requestTimeout: number) {
    this.#connection = connection;
    this.#timeout = timeout;
    this.#requestTimeout = requestTimeout;
  }

  async kafka(): Promise<Kafka> {
    return (await this.#open()).kafka;
  }

  async close(): Promise<void> {
    const opened = await this.#opened?.catch(() => null);
    await opened?.base.close().catch(() => undefined);
  }

  /** The leader of each partition, and the topic's id. @param refresh asks even if it was asked a moment ago */
  async topic(name: string, refresh = false): Promise<{ id: string; leaders: readonly number[] }> {
    const { base } = await this.#open();
    const metadata = await this.soon(base.metadata({ topics: [name], forceUpdate: refresh }));
    const found = metadata.topics.get(name);
    if (found === undefined) throw new Error(`Unknown topic ${name}.`);
    return { id: found.id, leaders: found.partitions.map(({ leader }) => leader) };
  }

  /** A connection to one broker. */
  async node(id: number): Promise<Socket> {
    const { base } = await this.#open();
    const { brokers } = await this.soon(base.metadata({}));
    const broker = brokers.get(id);
    if (broker === undefined) throw new Error(`broker ${id} is not there`);
    return this.soon(base.connections.get(broker));
  }

  /** A connection to a broker that answers. Throws when none does. */
  async any(): Promise<Socket> {
    const { base } = await this.#open();
    const { brokers } = await this.soon(base.metadata({ topics: [], forceUpdate: true }));
    return this.soon(base.connections.getFirstAvailable([...brokers.values()]));
  }

  async api<T>(name: string): Promise<T> {
    const { kafka, base } = await this.#open();
    return new Promise((resolve, reject) => {
      base[kafka.kGetApi](name, (error, api) =>
        error === null || error === undefined ? resolve(api as T) : reject(error),
      );
    });
  }

  /**
   * The answer of a broker, or, with `node` null, of any that answers.
   * @param beside milliseconds that the broker may take before it answers
   */
  async ask<Result>(name: string, node: number | null, args: unknown[], beside = 0): Promise<Result> {
    const api = await this.api<API<unknown[], Result>>(name);
    const socket = await (node === null ? this.any() : this.node(node));
    return this.soon(api.async(socket, ...args), beside);
  }

  /** Limits the wait for a broker that is connected and does not answer. */
  soon<T>(work: Promise<T>, beside = 0): Promise<T> {
    return within(work, this.#timeout + beside, NEVER, new Error('no answer in time'));
  }

  #open(): Promise<Opened> {
    return (this.#opened ??= this.#load());
  }

  async #load(): Promise<Opened> {
    const kafka = await import('@platformatic/kafka');
    const requestTimeout = this.#requestTimeout;
    const base = new kafka.Base({ ...clientOptions(this.#connection, this.#timeout), requestTimeout });
    quiet(base);
    return { kafka, base };
  }
}

/** The answer in an error: the package throws an answer that reports an error of a part. */
export function answerIn(error: unknown): unknown {
  if (error instanceof Error && 'response' in error) return error.response;
  throw error;
}

/** The protocol's name of an error. */
export function codeName({ protocolErrorsCodesById }: Kafka, code: number): string {
  return protocolErrorsCodesById[code] ?? `error ${code}`;
}
