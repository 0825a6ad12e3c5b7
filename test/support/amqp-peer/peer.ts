import type { Server } from 'node:net';
import rhea from 'rhea';
import { BrokerPeer } from '../broker-peer.ts';
import { cutOff, readerName, serve } from './connection.ts';
import { Faults, type Fault } from './faults.ts';
import { decodeStored, Hub, type PeerMessage } from './hub.ts';

export interface AmqpPeerOptions {
  readonly hubs: readonly string[];
  /** Partitions of each hub. */
  readonly partitions?: number;
  /** 0 takes any free port. */
  readonly port?: number;
  /** Largest message a link takes, bytes of AMQP, or 0 for no limit; the service's standard tier takes 1,046,528. */
  readonly maxMessageBytes?: number;
  /** False counts messages and throws them away: for benchmarks. */
  readonly keep?: boolean;
  /** Wall clock in milliseconds, for enqueued times. */
  readonly now?: () => number;
}

/**
 * An Event Hubs namespace in this process, spoken to over real AMQP on a real port: tokens, management reads, sending
 * in batches, reading from a position, limits, and faults on demand. Messages live in memory.
 *
 *     const peer = await startAmqpPeer({ hubs: ['events'] });
 *     new EventHubProducerClient(peer.connectionString, 'events') …
 *     peer.inject({ kind: 'server-busy', times: 1 });
 *     await peer.received('events', 10);
 *     peer.messages('events');
 *     await peer.stop();
 */
export class AmqpPeer extends BrokerPeer<Fault> {
  readonly #hubs: ReadonlyMap<string, Hub>;
  readonly #container = rhea.create_container({ id: 'amqp-peer' });
  readonly #waiting = new Set<() => void>();

  constructor({
    hubs,
    partitions = 4,
    port,
    maxMessageBytes = 1_046_528,
    keep = true,
    now,
  }: AmqpPeerOptions) {
    const faults = new Faults();
    super(faults, port);
    this.#hubs = new Map(hubs.map((name) => [name, new Hub(name, partitions, keep)]));
    const mechanisms = this.#container.sasl_server_mechanisms as unknown as Record<string, unknown> & {
      enable_anonymous(): void;
    };
    mechanisms.enable_anonymous();
    // What the service offers beside it; the token that follows on $cbs is what counts.
    mechanisms['MSSBCBS'] = () => ({ outcome: undefined, start: allow });
    serve(this.#container, { hubs: this.#hubs, faults, maxMessageBytes, now: now ?? Date.now });
    for (const hub of this.#hubs.values())
      for (const { readers } of hub.partitions) readers.add(() => this.#tell());
  }

  /** For every client of the namespace; it names no hub. */
  get connectionString(): string {
    const endpoint = `Endpoint=sb://127.0.0.1:${this.port}`;
    return `${endpoint};SharedAccessKeyName=k;SharedAccessKey=c2VjcmV0;UseDevelopmentEmulator=true`;
  }

  /** Everything a hub holds, in order of arrival. */
  messages(hub: string): readonly PeerMessage[] {
    return this.#hub(hub).arrivals.map(decodeStored);
  }

  /** As if it had been published to that partition. */
  add(hub: string, partition: number, { body, properties }: Pick<PeerMessage, 'body' | 'properties'>): void {
    const { data_section: data, encode } = rhea.message;
    const bytes = encode({ body: data(body), application_properties: properties });
    this.#hub(hub).add([bytes], null, partition, Date.now());
  }

  /** Messages a hub has taken, kept or not. */
  taken(hub: string): { readonly count: number } {
    return this.#hub(hub);
  }

  /** Who reads each partition of a hub now, by the names the readers gave themselves. */
  readers(hub: string): readonly (readonly string[])[] {
    return this.#hub(hub).partitions.map(({ links }) => [...links.keys()].map(readerName));
  }

  /** Resolves once a hub has taken that many messages. */
  async received(hub: string, count: number): Promise<void> {
    while (this.#hub(hub).count < count) await new Promise<void>((resolve) => this.#waiting.add(resolve));
  }

  override cut(): void {
    for (const socket of this.sockets) cutOff(socket);
  }

  /** The connections there are get no answer any more; new ones do. */
  freeze(): void {
    for (const socket of this.sockets) socket.pause();
  }

  protected override listen(port: number): Server {
    return this.#container.listen({ port, host: '127.0.0.1', ...FRAMES });
  }

  #hub(name: string): Hub {
    const hub = this.#hubs.get(name);
    if (hub === undefined) throw new RangeError(`the peer has no hub ${name}`);
    return hub;
  }

  #tell(): void {
    for (const wake of this.#waiting) wake();
    this.#waiting.clear();
  }
}

/** As the service frames: a message of a megabyte comes in sixteen parts. */
const FRAMES = { max_frame_size: 65_536, credit_window: 500, autoaccept: false };

function allow(this: { outcome: boolean | undefined }): void {
  this.outcome = true;
}

export async function startAmqpPeer(options: AmqpPeerOptions): Promise<AmqpPeer> {
  const peer = new AmqpPeer(options);
  await peer.restart();
  return peer;
}
