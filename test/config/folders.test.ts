import { mkdirSync, symlinkSync, writeFileSync } from 'node:fs';
import { join, relative } from 'node:path';
import { describe, expect, it } from 'vitest';
import { resolveConfig } from '../../src/config/load.ts';
import { temporaryFolder } from '../support/folders.ts';
import { SECRET } from '../support/signed-events.ts';
import { millrace } from '../support/millrace.ts';
import { temporaryFile } from './helpers.ts';

/** What is wrong with a config of these sinks, journal and erasures beside them unless changed; empty when nothing is. */
async function wrongWith(root: string, sinks: object, changes: object = {}): Promise<string> {
  const config = {
    signing: { secrets: [SECRET] },
    journal: { path: join(root, 'journal') },
    erasure: { path: join(root, 'erasure') },
    sinks,
    ...changes,
  };
  try {
    await resolveConfig({ file: temporaryFile('millrace.yaml', JSON.stringify(config)), env: {} });
    return '';
  } catch (error) {
    return error instanceof Error ? error.message : String(error);
  }
}

const files = (path: string, more: object = {}): object => ({ type: 'files', path, ...more });

describe('folders of two parts', () => {
  it('two files sinks on one path do not pass, however the path is spelled', async () => {
    const root = await temporaryFolder();
    mkdirSync(join(root, 'there'));
    symlinkSync(join(root, 'there'), join(root, 'link'));
    symlinkSync(root, join(root, 'there', 'up'));
    const there = join(root, 'there');
    const spelled = [
      there,
      `${there}/`,
      `${root}/./x/../there`,
      relative(process.cwd(), there),
      join(root, 'link'),
      `${root}/link/up/there/`,
    ];
    for (const path of spelled)
      expect(await wrongWith(root, { one: files(there), two: files(path) })).toContain(
        `sinks.two.path: ${path} is the folder of sinks.one.path (${there}) too`,
      );
    // Not created yet: compared by name, below an existing folder.
    const one = files(join(root, 'link', 'new', 'archive'));
    expect(await wrongWith(root, { one, two: files(join(there, 'new', 'archive', '')) })).toContain(
      'is the folder of sinks.one.path',
    );
  });

  it('one inside another does not pass, for archives, tables, key stores, journal and erasures', async () => {
    const root = await temporaryFolder();
    const at = (...names: string[]): string => join(root, ...names);
    const archive = files(at('archive'));
    const masterKey = Buffer.alloc(32, 7).toString('base64');
    const followUp = { type: 'follow-up', path: at('archive', 'pulls'), baseUrl: 'http://x', apiKey: 'key' };
    const cases: [object, object, string][] = [
      [{ archive, other: files(at('archive', 'other')) }, {}, 'sinks.other.path: '],
      [{ archive: files(at('archive', 'deep')), outer: files(at('archive')) }, {}, 'holds the folder of'],
      [{ archive, claims: files(at('archive', 'claim-checks')) }, {}, 'sinks.claims.path: '],
      [{ archive, pulls: followUp }, {}, 'sinks.pulls.path: '],
      [{ archive }, { journal: { path: at('archive', 'journal') } }, 'holds the folder of journal.path'],
      [{ archive }, { journal: { path: at('archive') } }, 'is the folder of journal.path'],
      [{ archive }, { erasure: { path: at('archive', 'erasure') } }, 'holds the folder of erasure.path'],
      [{ archive: files(at('journal', 'x')) }, {}, 'lies inside the folder of journal.path'],
      [
        { archive },
        { receipts: { path: at('archive', 'log'), origin: 'acme.example' } },
        'sinks.archive.path: ',
      ],
      [{ archive }, { receipts: { path: at('journal'), origin: 'acme.example' } }, 'receipts.path: '],
      [
        { archive: files(at('archive'), { encrypt: { store: at('archive', 'keys'), masterKey } }) },
        {},
        'sinks.archive.encrypt.store: ',
      ],
    ];
    for (const [sinks, changes, message] of cases)
      expect(await wrongWith(root, sinks, changes)).toContain(message);
  });

  it.each(['s3', 'azblob', 'gs'])(
    '%s: archives in one place, or one inside another, do not pass',
    async (scheme) => {
      const root = await temporaryFolder();
      const at = (rest: string, more?: object): object => files(`${scheme}://bucket${rest}`, more);
      const cases: [one: string, two: string, message: string][] = [
        ['', '/in/ner', 'lies inside the place of sinks.one.path'],
        ['/in/', '/in/ner', 'lies inside the place of sinks.one.path'],
        ['/in/ner/', '/in', 'holds the place of sinks.one.path'],
        ['/a', '/a/', 'is the place of sinks.one.path'],
      ];
      for (const [one, two, message] of cases)
        for (const more of [{}, { spool: 'none' }])
          expect(await wrongWith(root, { one: at(one, more), two: at(two, more) })).toContain(
            `sinks.two.path: ${scheme}://bucket${two} ${message}`,
          );
      expect(await wrongWith(root, { one: at('/in'), two: at('/inner'), three: at('-b/in') })).toBe('');
    },
  );

  it('a URL does not pass where only a folder of this machine can be used', async () => {
    const root = await temporaryFolder();
    const url = 's3://acme/health';
    const archive = files(join(root, 'archive'));
    const followUp = { type: 'follow-up', path: url, baseUrl: 'http://x', apiKey: 'key' };
    const cases: [sinks: object, changes: object, key: string][] = [
      [{ archive }, { journal: { path: url } }, 'journal.path'],
      [{ archive }, { erasure: { path: url } }, 'erasure.path'],
      [{ archive }, { receipts: { path: url, origin: 'acme.example' } }, 'receipts.path'],
      [{ pulls: followUp }, {}, 'sinks.pulls.path'],
      [{ archive: files('gs://acme/archive', { spool: url }) }, {}, 'sinks.archive.spool'],
    ];
    for (const [sinks, changes, key] of cases) {
      const message = await wrongWith(root, sinks, changes);
      expect(message).toContain(`${key}: must be a folder on this machine, not a URL`);
      expect(message).not.toContain(url);
    }
  });

  it('folders side by side pass, also where one name begins like another', async () => {
    const root = await temporaryFolder();
    const sinks = { a: files(join(root, 'archive')), b: files(join(root, 'archive-b')) };
    expect(await wrongWith(root, sinks)).toBe('');
    // Without a journal its folder is not used.
    const direct = { acknowledge: 'delivered', journal: { path: join(root, 'archive') } };
    expect(await wrongWith(root, sinks, direct)).toBe('');
  });
});

it('an archive that continues another in a new folder is warned of, until there is an archive', async () => {
  const root = await temporaryFolder();
  const path = join(root, 'archive');
  const text = JSON.stringify({
    signing: { secrets: [SECRET] },
    journal: { path: join(root, 'journal') },
    erasure: { path: join(root, 'erasure') },
    sinks: {
      fresh: files(path, { continues: 'old' }),
      other: files(join(root, 'other')),
      out: { type: 'stdout', continues: 'hubs' },
    },
  });
  const config = temporaryFile('millrace.yaml', text);
  const warned = async (): Promise<string[]> =>
    (await millrace(['check', '--config', config])).stderr.split('\n').filter(Boolean);
  expect(await warned()).toEqual([
    expect.stringMatching(
      /^warning: .*:1:\d+: sinks\.fresh\.path: is .*: if old was a files sink, keep its path/,
    ),
  ]);
  mkdirSync(path);
  writeFileSync(join(path, '_manifest.jsonl'), '');
  expect(await warned()).toEqual([]);
});
