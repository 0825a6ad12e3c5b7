// Stands in for node:crypto: the states of one history hold the same signed lines, and each is checked once.
export * from 'node:crypto';
export { verify } from '../../support/remembered-verify.ts';
