import { expect, test } from 'vitest';
import { temporaryFolder } from '../support/folders.ts';
import { figures } from './figures.ts';
import limits from './limits.json' with { type: 'json' };

test('the program does not grow: no figure is above its limit', async () => {
  const now = await figures(await temporaryFolder());
  expect(Object.keys(now)).toEqual(Object.keys(limits));
  const grown = Object.entries(limits).filter(([name, limit]) => (now[name] ?? 0) > limit);
  expect(grown.map(([name, limit]) => `${name}: ${now[name]}, at most ${limit}`)).toEqual([]);
});
