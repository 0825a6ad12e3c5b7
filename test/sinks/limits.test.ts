import { expect, it } from 'vitest';
import { limitsOf } from '../../src/sinks/limits.ts';

const LIMITS = {
  batchCount: 10,
  batchBytes: 1e6,
  eventBytes: 1e6,
  inFlight: 1,
  order: 'user',
  batchBy: 'mixed',
};

const verb = (): void => undefined;

function sinkWith(limits: object): object {
  return { open: verb, send: verb, close: verb, limits: { ...LIMITS, ...limits } };
}

it('a sink says whether it waits for this machine alone, or nothing of it', () => {
  expect(limitsOf(sinkWith({}))).toEqual(LIMITS);
  expect(limitsOf(sinkWith({ isNear: true })).isNear).toBe(true);
  expect(() => limitsOf(sinkWith({ isNear: 'no' }))).toThrow('limits.isNear must be true or false');
});
