import { expect, test } from 'vitest';
import { resultOf, toMillraceError } from '../../src/sinks/postgres/failure.ts';

const failed = (code: string | null): Error =>
  Object.assign(new Error(`made up: ${code}`), code === null ? {} : { code });

// What a broken connection is called by the system has the length of a SQLSTATE.
test.each([
  ['EPIPE', true],
  ['ECONNRESET', true],
  [null, true],
  ['57P01', true],
  ['53300', true],
  ['40001', true],
  ['28P01', false],
  ['42501', false],
  ['22P02', false],
  ['XX000', false],
])('%s: worth another try: %s', (code, retryable) => {
  expect(toMillraceError('db', failed(code))).toMatchObject({
    code: retryable ? 'database_unavailable' : 'database_refused',
    retryable,
  });
  expect(resultOf(failed(code), 1).status).toBe(code === '22P02' ? 'refused' : 'retry');
});
