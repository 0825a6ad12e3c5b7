import { expect, test } from 'vitest';
import { temporaryFolder } from '../support/folders.ts';
import { millrace } from '../support/millrace.ts';

test('an excerpt of a time that ends before it begins is refused', async () => {
  const folder = await temporaryFolder();
  const args = ['archive', 'excerpt', folder, '--table', 'events', '--since', '2026-11-22', '--until'];
  const { code, stderr } = await millrace([...args, '2026-11-20']);
  expect({ code, stderr }).toMatchObject({
    code: 2,
    stderr: expect.stringContaining('--since must be before'),
  });
  expect(await millrace([...args, '2026-11-22'])).toMatchObject({ code: 0 });
});
