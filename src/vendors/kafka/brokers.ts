import type { API, Base, Connection as Socket } from '@platformatic/kafka';
import { within } from '../../lib/abort.ts';
import { clientOptions, quiet, type Connection } from './connection.ts';

export type Kafka = typeof import('@platformatic/kafka');
/** A request of the protocol in the version that the brokers speak. */
export type Call<Args extends unknown[], Result> = API<Args, Result>;

const NEVER = new AbortController().signal;

/** The brokers of a cluster: of the package the connections, the metadata and the encoding, and none of its clients. */
export class Brokers {
  readonly kafka: Kafka;
  readonly #base: Base;
  readonly #timeout: number;

  private constructor(kafka: Kafka, base: Base, timeout: number) {
    this.kafka = kafka;
    this.#base = base;
    this.#timeout = timeout;
  }

  /**
   * Connects nothing yet.
   * @param timeout milliseconds for what is looked up here
   * @param requestTimeout milliseconds for one request of whoever asks for a connection
   */
  static async load(connection: Connection, timeout: number, requestTimeout: number): Promise<Brokers> {
    const kafka = await import('@platformatic/kafka');
    const base = new kafka.Base({ ...clientOptions(connection, timeout), requestTimeout });
    quiet(base);
    return new Brokers(kafka, base, timeout);
  }

  async close(): Promise<void> {
    await this.#base.close().catch(() => undefined);
  }

  /** The leader of each partition, and the topic's id. @param anew looks even if it was looked up a moment ago */
  async topic(name: string, anew = false): Promise<{ id: string; leaders: readonly number[] }> {
    const metadata = await this.soon(this.#base.metadata({ topics: [name], forceUpdate: anew }));
    const found = metadata.topics.get(name);
    if (found === undefined) throw new Error(`Unknown topic ${name}.`);
    return { id: found.id, leaders: found.partitions.map(({ leader }) => leader) };
  }

  /** A connection to one broker. */
  async node(id: number): Promise<Socket> {
    const { brokers } = await this.soon(this.#base.metadata({}));
    const broker = brokers.get(id);
    if (broker === undefined) throw new Error(`broker ${id} is not there`);
    return this.soon(this.#base.connections.get(broker));
  }

  /** A connection to whichever broker answers. Throws when none does. */
  async any(): Promise<Socket> {
    const { brokers } = await this.soon(this.#base.metadata({ topics: [], forceUpdate: true }));
    return this.soon(this.#base.connections.getFirstAvailable([...brokers.values()]));
  }

  api<T>(name: string): Promise<T> {
    return new Promise((resolve, reject) => {
      this.#base[this.kafka.kGetApi](name, (error, api) =>
        error === null || error === undefined ? resolve(api as T) : reject(error),
      );
    });
  }

  /**
   * The answer of a broker, or, where `node` is null, of whichever answers.
   * @param beside milliseconds that the broker may take of its own
   */
  async ask<Result>(name: string, node: number | null, args: unknown[], beside = 0): Promise<Result> {
    const api = await this.api<Call<unknown[], Result>>(name);
    const socket = await (node === null ? this.any() : this.node(node));
    return this.soon(api.async(socket, ...args), beside);
  }

  /** A broker that is there and says nothing must not be waited for without end. */
  soon<T>(work: Promise<T>, beside = 0): Promise<T> {
    return within(work, this.#timeout + beside, NEVER, new Error('no answer in time'));
  }

  /** An answer with an error in it is thrown, and is an answer all the same. */
  answerIn(error: unknown): unknown {
    if (error instanceof this.kafka.ResponseError && 'response' in error) return error.response;
    throw error;
  }

  /** Whether an error is this one of the protocol's. */
  isNamed(error: unknown, ...names: readonly string[]): boolean {
    return (
      error instanceof Error && names.some((name) => this.kafka.findErrorBy(error, 'apiId', name) !== null)
    );
  }

  /** What the protocol calls an error. */
  nameOf(code: number): string {
    return this.kafka.protocolErrorsCodesById[code] ?? `error ${code}`;
  }
}
