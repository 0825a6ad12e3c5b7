import { describe, test } from 'vitest';
import { skipped, type Lack } from './requirements.ts';

/** Tests that need something; where it is lacking they are skipped, with the reason in the title. */
export function describeUnless(lack: Lack, title: string, body: () => void | Promise<void>): void {
  describe.skipIf(lack !== null)(`${title}${skipped(lack)}`, () =>
    // oxlint-disable-next-line vitest/warn-todo -- without a test in it the skipped group would not be reported
    lack === null ? body() : test.todo('is not run here'),
  );
}
