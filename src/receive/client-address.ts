import type { IncomingMessage } from 'node:http';
import { isIPv4, isIPv6 } from 'node:net';

/** With a port, as some proxies write it. */
const WITH_PORT = /^(?:\[([^\]]*)\](?::\d+)?|([\d.]+):\d+)$/;

/**
 * Who sends a request: the peer, or with proxies in front what the outermost of them has seen.
 * @param proxies how many proxies stand in front, each of which adds the address of its peer to X-Forwarded-For
 * @returns an IPv4 address, or the /64 of an IPv6 one, for whoever has one of these has them all
 */
export function clientAddress({ socket, headers }: IncomingMessage, proxies: number): string {
  const peer = socket.remoteAddress ?? '';
  if (proxies === 0) return networkOf(peer) ?? peer;
  // Repeated ones are joined by node. What stands left of the proxies' own entries anybody can have written.
  const hops = String(headers['x-forwarded-for'] ?? '').split(',');
  return networkOf(hops.at(-proxies)?.trim() ?? '') ?? networkOf(peer) ?? peer;
}

/** @returns `null` for what is no address */
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
