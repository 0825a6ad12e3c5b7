import { hash } from 'node:crypto';

/** Made-up data follows from a seed and names, the same on every machine. */
export type Name = string | number;

/** A UUID (v4 in form) from names. */
export function uuidOf(...names: readonly Name[]): string {
  const hex = hash('sha256', names.join('|'));
  const variant = '89ab'[Number.parseInt(hex[16] ?? '0', 16) % 4];
  return `${hex.slice(0, 8)}-${hex.slice(8, 12)}-4${hex.slice(13, 16)}-${variant}${hex.slice(17, 20)}-${hex.slice(20, 32)}`;
}

/** Random numbers in [0, 1) from names (mulberry32). */
export function randomOf(...names: readonly Name[]): () => number {
  let state = Number.parseInt(hash('sha256', names.join('|')).slice(0, 8), 16);
  return () => {
    state = (state + 0x6d2b79f5) >>> 0;
    let mixed = Math.imul(state ^ (state >>> 15), state | 1);
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61);
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32;
  };
}

export function pick<T>(random: () => number, values: readonly [T, ...T[]]): T {
  return values[Math.floor(random() * values.length)] ?? values[0];
}
