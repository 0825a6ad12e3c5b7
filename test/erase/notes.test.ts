import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { temporaryFolder } from '../support/folders.ts';
import { erasuresOver, folderStore } from './support.ts';

test.each([
  ['other.json', '{"user_id":12345,"note":"meals of anna"}'],
  ['state.json', '{"user_id":12345,"note":"meals of anna"}'],
  ['plan.json', '{"user_id":12345,"note":"meals of anna"}'],
])('%s of somebody else, in a folder that is to be searched, holds back the receipt', async (name, text) => {
  const folder = await temporaryFolder();
  const store = join(folder, 'store');
  mkdirSync(store);
  writeFileSync(join(store, name), text);
  const { erasures } = erasuresOver(join(folder, 'erasure'), [folderStore(store)]);
  for (const id of ['anna', '12345']) await erasures.request({ by: 'client_user', id, team: null }, true);
  const { receipts, left } = await erasures.run();
  expect([receipts.length, left.map(({ item }) => item)]).toEqual([0, [name]]);
});
