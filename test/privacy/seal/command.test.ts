import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { KeyStore } from '../../../src/privacy/seal/key-store.ts';
import { parseMasterKey } from '../../../src/privacy/seal/master-key.ts';
import { parseOptions } from '../../../src/sinks/files/config.ts';
import { temporaryFolder } from '../../support/folders.ts';
import { millrace, writeConfig } from '../../support/millrace.ts';
import { keysOf, MASTER, MASTER_TEXT, OTHER, owner } from './support.ts';

describe('millrace keys', () => {
  it('generate prints a key that is another each time, and that a config takes', async () => {
    const [one, two] = await Promise.all([millrace(['keys', 'generate']), millrace(['keys', 'generate'])]);
    expect(one.stdout).not.toBe(two.stdout);
    expect(parseMasterKey(one.stdout)).toHaveLength(32);
  });

  it('rotate wraps the keys of the config’s sinks again; status counts them', async () => {
    const folder = await temporaryFolder();
    const store = join(folder, 'keys');
    const keys = await KeyStore.open(store, MASTER);
    await keysOf(keys, [owner(1), owner(2)]);
    await keys.close();
    const encrypt = { store, masterKey: '${MASTER}' };
    const config = writeConfig(folder, {
      sinks: { archive: { type: 'files', path: join(folder, 'archive'), encrypt } },
    });
    const env = { MASTER: MASTER_TEXT, NEW: OTHER.toString('hex') };
    const rotate = await millrace(['keys', 'rotate', '--config', config, '--new-master-key-env', 'NEW'], {
      env,
    });
    expect([rotate.code, rotate.stdout]).toEqual([0, `${store}: 2 keys rewrapped\n`]);
    const old = await millrace(['keys', 'status', '--config', config], { env });
    expect([old.code, old.stderr]).toEqual([2, expect.stringContaining('Master key is wrong')]);
    const now = await millrace(['keys', 'status', '--config', config, '--json'], {
      env: { ...env, MASTER: env.NEW },
    });
    expect(JSON.parse(now.stdout)).toEqual({ path: store, active: 2, destroyed: 0, damaged: 0 });
    expect(rotate.stdout + rotate.stderr + old.stderr).not.toContain(MASTER.toString('base64'));
  });

  it('check shows the store and hides the master key; a wrong one is named by its key', async () => {
    const folder = await temporaryFolder();
    const sink = { type: 'files', path: join(folder, 'archive') };
    const config = (masterKey: string): string =>
      writeConfig(folder, {
        sinks: { archive: { ...sink, encrypt: { store: './made-up-keys', masterKey } } },
      });
    const good = await millrace(['check', '--config', config(MASTER_TEXT)]);
    expect([good.code, good.stderr]).toEqual([0, expect.any(String)]);
    expect(good.stdout).toContain('./made-up-keys');
    expect(good.stdout + good.stderr).not.toContain(MASTER.toString('base64'));
    const short = await millrace(['check', '--config', config('c2hvcnQ=')]);
    expect([short.code, short.stderr]).toEqual([
      2,
      expect.stringContaining('sinks.archive.encrypt.masterKey: must be 32 bytes in base64'),
    ]);
    expect(short.stderr).not.toContain('c2hvcnQ=');
  });

  it('a sealed archive keeps no large events for other sinks', async () => {
    const folder = await temporaryFolder();
    const encrypt = { store: join(folder, 'keys'), masterKey: MASTER_TEXT };
    const config = writeConfig(folder, {
      sinks: {
        archive: { type: 'files', path: join(folder, 'archive'), encrypt },
        out: { type: 'stdout', oversize: 'claim-check' },
      },
    });
    const { code, stderr } = await millrace(['check', '--config', config]);
    expect([code, stderr]).toEqual([2, expect.stringContaining('that can keep large events')]);
    writeFileSync(config, '');
  });
});

describe('encrypt', () => {
  it.each([
    [{ masterKey: MASTER_TEXT }, 'encrypt.store: '],
    [{ store: 'keys' }, 'encrypt.masterKey: '],
    [{ store: 'keys', masterKey: 'not base64!' }, 'encrypt.masterKey: must be 32 bytes'],
    [{ store: 'keys', masterKey: MASTER_TEXT, per: 'team' }, 'encrypt.per: '],
    [{ store: 'keys', masterKey: MASTER_TEXT, salt: 1 }, 'encrypt: Unrecognized key'],
  ])('%j is refused: %s', (encrypt, message) => {
    expect(() => parseOptions({ path: 'x', encrypt })).toThrow(message);
  });

  it('takes a master key in base64, with or without its prefix, and in hex', () => {
    for (const masterKey of [MASTER_TEXT, MASTER.toString('base64'), MASTER.toString('hex')]) {
      expect(parseOptions({ path: 'x', encrypt: { store: 'keys', masterKey } }).encrypt).toEqual({
        per: 'user',
        store: 'keys',
        masterKey: MASTER,
      });
    }
  });
});
