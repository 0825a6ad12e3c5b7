import { here } from './world.ts';

// Stands in for node:crypto, for what is random there.
export * from 'node:crypto';
export { verify } from '../support/remembered-verify.ts';

export function randomBytes(count: number): Buffer {
  return here().scheduler.random.bytes(count);
}

export function randomUUID(): string {
  const hex = randomBytes(16).toString('hex');
  return `${hex.slice(0, 8)}-${hex.slice(8, 12)}-4${hex.slice(13, 16)}-8${hex.slice(17, 20)}-${hex.slice(20)}`;
}
