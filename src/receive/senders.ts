import type { IncomingMessage } from 'node:http';
import { isIPv4, isIPv6 } from 'node:net';
import type { Connections } from './connections.ts';
import { declaredLength } from './examine.ts';
import type { Sender, UnverifiedWork } from './unverified.ts';

/** The senders of requests, and how far each is known. */
export class Senders {
  readonly #unverified: UnverifiedWork;
  readonly #connections: Connections;
  readonly #trustedProxies: number;
  #onForwarded: (() => void) | undefined;

  /** @param onForwarded called once, for an authentic delivery with X-Forwarded-For when no proxy is trusted */
  constructor(
    unverified: UnverifiedWork,
    connections: Connections,
    trustedProxies: number,
    onForwarded: (() => void) | undefined,
  ) {
    this.#unverified = unverified;
    this.#connections = connections;
    this.#trustedProxies = trustedProxies;
    this.#onForwarded = onForwarded;
  }

  of(request: IncomingMessage): Sender {
    // Over one connection of a proxy come the deliveries of many senders.
    const isKnown = this.#trustedProxies === 0 && this.#connections.isKnown(request.socket);
    return this.#unverified.senderOf(clientAddress(request, this.#trustedProxies), isKnown);
  }

  /** An authentic delivery has come over this connection, from this address. */
  remember(request: IncomingMessage): void {
    const hasProxies = this.#trustedProxies > 0;
    if (!this.#connections.setKnown(request.socket, true) && !hasProxies) return;
    this.#unverified.remember(clientAddress(request, this.#trustedProxies));
    if (hasProxies || request.headers['x-forwarded-for'] === undefined) return;
    this.#onForwarded?.();
    this.#onForwarded = undefined;
  }

  /** Whether the rest of a refused body may be read and dropped: that is work too, and is charged. */
  mayLinger(request: IncomingMessage): boolean {
    const sender = this.of(request);
    if (this.#unverified.waitOf(sender) > 0) return false;
    this.#unverified.wasted(sender, declaredLength(request.headers) ?? 0);
    return true;
  }
}

/** An address with a port, as some proxies write it. */
const WITH_PORT = /^(?:\[([^\]]*)\](?::\d+)?|([\d.]+):\d+)$/;

/**
 * The address of a sender: that of the peer, or with proxies in front, the one that the outermost proxy has seen.
 * @param proxies number of proxies, each of which adds the address of its peer to X-Forwarded-For
 * @returns an IPv4 address, or the /64 network of an IPv6 address, because a sender with one address has the whole network
 */
export function clientAddress({ socket, headers }: IncomingMessage, proxies: number): string {
  const peer = socket.remoteAddress ?? '';
  if (proxies === 0) return networkOf(peer) ?? peer;
  // Node joins repeated headers. Any sender can write what is left of the proxies' own entries.
  const hops = String(headers['x-forwarded-for'] ?? '').split(',');
  return networkOf(hops.at(-proxies)?.trim() ?? '') ?? networkOf(peer) ?? peer;
}

/** Null for a text that is no address. */
function networkOf(text: string): string | null {
  const [, inBrackets, beforePort] = WITH_PORT.exec(text) ?? [];
  const address = inBrackets ?? beforePort ?? text;
  const mapped = address.replace(/^::ffff:/i, '');
  if (isIPv4(mapped)) return mapped;
  if (!isIPv6(address)) return null;
  const [front = '', back] = address.split('::');
  const before = front.split(':');
  const after = back === undefined ? [] : back.split(':');
  const zeros = Array.from({ length: back === undefined ? 0 : 8 - before.length - after.length }, () => '0');
  const groups = [...before, ...zeros, ...after].slice(0, 4);
  return `${groups.map((group) => Number.parseInt(group || '0', 16).toString(16)).join(':')}::/64`;
}
