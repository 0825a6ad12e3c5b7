import type { Socket } from 'node:net';
import rhea, { type Connection, type Container, type Delivery, type Receiver, type Sender } from 'rhea';
import type { Faults } from './faults.ts';
import { encodeStored, positionOf, type Hub } from './hub.ts';
import { answerRequest } from './requests.ts';

const BATCH_FORMAT = 0x80013700;

export interface PeerState {
  readonly hubs: ReadonlyMap<string, Hub>;
  readonly faults: Faults;
  readonly maxMessageBytes: number;
  readonly now: () => number;
}

/** What an attached link of the client's is for. */
type Node =
  | { readonly kind: 'request' }
  | { readonly kind: 'publish'; readonly hub: Hub; readonly partition: number | null }
  | { readonly kind: 'read'; readonly hub: Hub; readonly partition: number };

/** Makes a container answer as an Event Hubs namespace does. */
export function serve(container: Container, state: PeerState): void {
  /** Where answers go: the client's receiving link for each request/response node of a connection. */
  const answers = new WeakMap<Connection, Map<string, Sender>>();
  const nodes = new WeakMap<Receiver, Node>();

  container.on('receiver_open', ({ receiver }: { receiver: Receiver }) => {
    const address = receiver.target?.address ?? '';
    const node = nodeAt(address, state.hubs);
    if (node === null || node.kind === 'read') return notFound(receiver, address);
    nodes.set(receiver, node);
    receiver.set_target({ address });
    receiver.set_source(receiver.source ?? {});
    // rhea has no setter for it, and writes the attach only after this event.
    (
      receiver as unknown as { local: { attach: { max_message_size: number } } }
    ).local.attach.max_message_size = state.maxMessageBytes;
  });

  container.on('sender_open', ({ sender, connection }: { sender: Sender; connection: Connection }) => {
    const address = sender.source?.address ?? '';
    const node = nodeAt(address, state.hubs);
    if (node === null || node.kind === 'publish') return notFound(sender, address);
    sender.set_source({ address });
    sender.set_target(sender.target ?? {});
    if (node.kind === 'read') return read(sender, node, state.faults);
    const links = answers.get(connection) ?? new Map<string, Sender>();
    answers.set(connection, links.set(address, sender));
  });

  container.on('message', (context: Arrival) => {
    const { receiver, delivery, connection, message } = context;
    const node = nodes.get(receiver);
    if (node?.kind === 'request') {
      delivery.accept();
      const to = answers.get(connection)?.get(receiver.target.address);
      to?.send(answerRequest(message as rhea.Message, state.hubs, state.faults));
      // The client drops what was in flight when the peer closed the link.
    } else if (node?.kind === 'publish' && receiver.is_open()) publish(node, context, state);
  });
  container.on('error', ignore);
  for (const event of ['connection_error', 'session_error', 'sender_error', 'receiver_error', 'disconnected'])
    container.on(event, ignore);
}

/** A message that has come in. */
interface Arrival {
  readonly receiver: Receiver;
  readonly connection: Connection;
  readonly delivery: Delivery;
  readonly message: rhea.Message | Buffer;
  readonly format?: number;
}

function publish(
  { hub, partition }: Node & { kind: 'publish' },
  { receiver, connection, delivery, message, format }: Arrival,
  state: PeerState,
): void {
  const bytes = Buffer.isBuffer(message) ? message : rhea.message.encode(message);
  if (state.maxMessageBytes > 0 && bytes.length > state.maxMessageBytes) return refuse(delivery, TOO_LARGE);
  const store = (): void => {
    const { message_annotations: notes, body } = rhea.message.decode(bytes);
    const key: unknown = notes?.['x-opt-partition-key'];
    // A batch has its messages as the sections of its body.
    const own = format === BATCH_FORMAT ? [(body as { content: Buffer | Buffer[] }).content].flat() : [bytes];
    hub.add(own, typeof key === 'string' ? key : null, partition, state.now());
  };
  const fault = state.faults.onBatch(hub.name, bytes);
  switch (fault?.kind) {
    case undefined:
      store();
      return delivery.accept();
    case 'latency':
      store();
      setTimeout(() => delivery.accept(), fault.ms).unref();
      return;
    case 'server-busy':
      return refuse(delivery, SERVER_BUSY);
    case 'size-exceeded':
      return refuse(delivery, TOO_LARGE);
    case 'reject':
      return refuse(delivery, { condition: fault.condition, description: fault.description ?? 'refused' });
    case 'release':
      return answerApart(delivery, () => delivery.release());
    case 'modify':
      return answerApart(delivery, () => delivery.modified({ delivery_failed: true }));
    case 'hang':
      if (fault.stored === true) store();
      return;
    case 'detach':
      if (fault.stored === true) store();
      return receiver.close(DETACHED);
    case 'drop':
      if (fault.stored !== false) store();
      cutOff((connection as unknown as { socket: Socket }).socket);
  }
}

/** A reader with an owner level has its partition for itself: one that comes later with the same level takes it away. */
function read(sender: Sender, { hub, partition: index }: Node & { kind: 'read' }, faults: Faults): void {
  const level = ownerLevelOf(sender);
  const others = hub.partitions[index]?.links ?? new Map<Sender, number | null>();
  for (const other of others.values())
    if (other !== null && (level === null || other > level)) return sender.close(stolen(other));
  if (level !== null) for (const other of others.keys()) take(other, others, level);
  others.set(sender, level);
  const stop = feed(sender, hub, index);
  const gone = (): void => {
    others.delete(sender);
    stop();
  };
  sender.on('sender_close', () => {
    gone();
    if (faults.onClose(hub.name)) sender.close(stolen(level ?? 0));
  });
  sender.connection.on('disconnected', gone);
}

function take(reader: Sender, others: Map<Sender, number | null>, level: number): void {
  others.delete(reader);
  reader.close(stolen(level));
}

function stolen(level: number): Refusal {
  return {
    condition: 'amqp:link:stolen',
    description: `New receiver with an epoch of '${level}' is created, hence the current one is disconnected.`,
  };
}

/** Null for a reader that shares its partition with other readers. */
function ownerLevelOf({ properties }: Sender): number | null {
  return (properties as Attached)?.['com.microsoft:epoch'] ?? null;
}

/** The name a reader gave itself, or none. */
export function readerName({ properties }: Sender): string {
  return (properties as Attached)?.['com.microsoft:receiver-name'] ?? '';
}

/** What the client said when it attached the link. */
type Attached =
  { readonly 'com.microsoft:epoch'?: number; readonly 'com.microsoft:receiver-name'?: string } | undefined;

/**
 * Sends a partition from the position the client asks for, as far as its credit goes, and what is added later.
 * @returns what ends it
 */
function feed(sender: Sender, hub: Hub, index: number): () => void {
  const partition = hub.partitions[index];
  const { filter = {} } = sender.source as { filter?: Record<string, { value: string }> };
  const selector = Object.values(filter)[0]?.value;
  if (partition === undefined || selector === undefined) return ignore;
  let next = positionOf(partition, selector);
  const send = (): void => {
    while (next < partition.messages.length && sender.sendable()) {
      const message = partition.messages[next];
      if (message === undefined) return;
      next += 1;
      sender.send(encodeStored(message), undefined, 0);
    }
  };
  partition.readers.add(send);
  sender.on('sendable', send);
  return () => partition.readers.delete(send);
}

function nodeAt(address: string, hubs: ReadonlyMap<string, Hub>): Node | null {
  if (address === '$cbs' || address.endsWith('$management')) return { kind: 'request' };
  const [, name = '', group, id] =
    /^([^/]+)(?:\/ConsumerGroups\/([^/]+))?(?:\/Partitions\/(\d+))?$/.exec(address) ?? [];
  const hub = hubs.get(name);
  if (hub === undefined || (id !== undefined && hub.partitions[Number(id)] === undefined)) return null;
  const partition = id === undefined ? null : Number(id);
  if (group === undefined) return { kind: 'publish', hub, partition };
  return partition === null ? null : { kind: 'read', hub, partition };
}

function notFound(link: Receiver | Sender, address: string): void {
  link.close({
    condition: 'amqp:not-found',
    description: `The messaging entity 'sb://127.0.0.1/${address}' could not be found.`,
  });
}

/** Without a word to the client. The error is for rhea on this side, which would otherwise continue sending heartbeats. */
export function cutOff(socket: Socket): void {
  socket.destroy(new Error('cut off'));
}

interface Refusal {
  readonly condition: string;
  readonly description: string;
}

const TOO_LARGE = {
  condition: 'amqp:link:message-size-exceeded',
  description: 'The received message is larger than the link allows.',
};
const SERVER_BUSY = {
  condition: 'com.microsoft:server-busy',
  description:
    'The request was terminated because the entity is being throttled. Wait 4 seconds and try again.',
};

const DETACHED = {
  condition: 'amqp:link:detach-forced',
  description: 'The link is force detached by the broker.',
};

function refuse(delivery: Delivery, error: Refusal): void {
  answerApart(delivery, () => delivery.reject(error));
}

/**
 * In a frame of its own. rhea joins the answers of one turn into one frame for a range, and takes no notice when the second
 * one is another than the first: what is refused would be reported as taken, or the other way round.
 */
function answerApart(delivery: Delivery, answer: () => void): void {
  writeAnswers(delivery);
  answer();
  writeAnswers(delivery);
}

/** Those that are still to be written; rhea has no other way to it than waiting for the next turn. */
function writeAnswers({ link: { session } }: Delivery): void {
  const { incoming } = session as unknown as { incoming: { process(of: object): void } };
  incoming.process(session);
}

function ignore(): void {
  // Clients come and go; what a test wants to know it finds in the messages.
}
