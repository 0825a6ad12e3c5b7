import { appendFileSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { MANIFEST } from '../../src/core/archive.ts';
import { formatManifestLine } from '../../src/core/archive-manifest.ts';
import type { Selection } from '../../src/replay/selection.ts';
import { temporaryFolder } from '../support/folders.ts';
import { writeArchive } from './made-up-archive.ts';
import { hashLine } from '../../src/lib/chained-log.ts';
import { filesOf, listing, unitsOf } from './support.ts';

/** Three files of 60 events, one an hour, and a manifest of them; the last one sealed, to go by what it says. */
async function listedArchive() {
  const folder = await temporaryFolder();
  const events = writeArchive(folder, { files: 3, each: 60, only: 'ndjson' });
  let previous = hashLine('');
  for (let file = 0; file < 3; file += 1) {
    const own = events.slice(file * 60, file * 60 + 60);
    const name = `000${file}.ndjson`;
    const line = formatManifestLine(
      {
        file: name,
        records: 60,
        bytes: readFileSync(join(folder, name)).length,
        sha256: '0'.repeat(64),
        first_received_at: new Date(own[0]!.receivedAt).toISOString(),
        last_received_at: new Date(own[59]!.receivedAt).toISOString(),
        types: file === 2 ? { sealed: 60 } : { [`made.up.${file}`]: 60 },
      },
      previous,
    );
    appendFileSync(join(folder, MANIFEST), `${line}\n`);
    previous = hashLine(line);
  }
  const start = events[0]!.receivedAt;
  const listed = async (selection: Partial<Selection>): Promise<{ files: string[]; passed: number }> => {
    const result = { files: [] as string[], passed: 0 };
    const onPassedOver = (_: string, files: number): void => void (result.passed = files);
    const units = await unitsOf(folder, { ...listing(undefined, selection), onPassedOver });
    result.files.push(...filesOf(units).map(({ file }) => file));
    return result;
  };
  return { folder, listed, start };
}

const HOUR = 3_600_000;

test('files that hold nothing of the selection, by the manifest, are not opened', async () => {
  const { listed, start } = await listedArchive();
  const [one, two, three] = ['0000.ndjson', '0001.ndjson', '0002.ndjson'];
  expect(await listed({})).toEqual({ files: [one, two, three], passed: 0 });
  expect(await listed({ users: ['nobody'] })).toEqual({ files: [one, two, three], passed: 0 });
  expect(await listed({ since: start + HOUR })).toEqual({ files: [two, three], passed: 1 });
  expect(await listed({ since: start + HOUR - 60_000, until: start + HOUR })).toEqual({
    files: [one],
    passed: 2,
  });
  expect(await listed({ until: start + HOUR + 1 })).toEqual({ files: [one, two], passed: 1 });
  // What is sealed can be of any type.
  expect(await listed({ types: ['made.up.0', 'other'] })).toEqual({ files: [one, three], passed: 1 });
});

test('a manifest that is not sound, and an entry of another size, are not believed', async () => {
  const { folder, listed, start } = await listedArchive();
  appendFileSync(join(folder, '0000.ndjson'), '{}\n');
  expect((await listed({ since: start + 2 * HOUR })).files).toEqual(['0000.ndjson', '0002.ndjson']);
  const manifest = join(folder, MANIFEST);
  writeFileSync(manifest, readFileSync(manifest, 'utf8').replace('made.up.1', 'made.up.X'));
  expect((await listed({ since: start + 2 * HOUR })).files).toHaveLength(3);
});
