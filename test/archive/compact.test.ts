import { createHash } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { describe, expect, test } from 'vitest';
import { copiesOf } from '../support/copies.ts';
import { runToItsEnd } from '../support/killed.ts';
import {
  ALL_IDS,
  compacted,
  filesOf,
  idsInFiles,
  idsRead,
  KINDS,
  makeTemplate,
  pathOf,
  verified,
} from './compact-support.ts';

const CHILD = fileURLToPath(new URL('compact-child.ts', import.meta.url));
const COMPRESSIONS = ['gzip', 'none'] as const;
const copies = {
  gzip: copiesOf((root) => makeTemplate(root, 'gzip')),
  none: copiesOf((root) => makeTemplate(root, 'none')),
};

const sha256 = (bytes: Buffer): string => createHash('sha256').update(bytes).digest('hex');

describe.each(KINDS.flatMap((kind) => COMPRESSIONS.map((compression) => [kind, compression] as const)))(
  'an archive in a place of kind %s, %s',
  (kind, compression) => {
    test('becomes one file of the same bytes, which is proven as before', async () => {
      const root = await copies[compression]();
      const before = filesOf(root, kind);
      const bytes = before.map((file) => readFileSync(join(pathOf(root, kind), file)));
      expect(before.length).toBeGreaterThan(2);
      const report = await compacted(root, kind);
      expect(report).toMatchObject({ made: 1, replaced: before.length, problems: 0, complete: true });
      const [after = '', ...others] = filesOf(root, kind);
      expect(others).toEqual([]);
      expect(sha256(readFileSync(join(pathOf(root, kind), after)))).toBe(sha256(Buffer.concat(bytes)));
      expect(idsInFiles(root, kind)).toEqual(ALL_IDS);
      expect(await idsRead(root, kind)).toEqual(ALL_IDS);
      expect(await verified(root, kind)).toEqual([]);
      expect(await compacted(root, kind)).toMatchObject({ made: 0, replaced: 0, cleared: 0, complete: true });
    });

    test.concurrent.each([
      ['put', 1],
      ['listed', 1],
      ['removed', 2],
    ] as const)(
      'kill -9 at %s (%i): each event once to who asks the manifest, then all done',
      async (step, nth) => {
        const root = await copies[compression]();
        expect(await runToItsEnd(CHILD, root, kind, step, String(nth))).toEqual(['SIGKILL', '']);
        expect(await idsRead(root, kind)).toEqual(ALL_IDS);
        expect(await verified(root, kind)).toEqual([]);
        expect((await compacted(root, kind)).reported).toEqual([]);
        expect(filesOf(root, kind)).toHaveLength(1);
        expect(idsInFiles(root, kind)).toEqual(ALL_IDS);
        expect(await idsRead(root, kind)).toEqual(ALL_IDS);
        expect(await verified(root, kind)).toEqual([]);
      },
    );
  },
);
