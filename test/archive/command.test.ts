import { appendFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { Webhook } from 'standardwebhooks';
import { describe, expect, it } from 'vitest';
import { archiveCommand } from '../../src/cli/archive.ts';
import { listArchive } from '../../src/archive/places.ts';
import { contractEvent } from '../../src/sinks/contract-events.ts';
import { run } from '../cli/run.ts';
import { tempFolder } from '../sinks/support.ts';
import { batchOf, writeFiles } from '../support/archives.ts';

const SECRET = `whsec_${Buffer.alloc(24, 7).toString('base64')}`;
const OTHER = `whsec_${Buffer.alloc(24, 8).toString('base64')}`;

/** An archive of events that were signed long ago, one of them with raw line breaks, one without a signature. */
async function signedArchive(): Promise<string> {
  const path = tempFolder();
  const events = ['"a":1}', '\r\n"a":"\\ud800"}', '"c":3}'].map((rest, i) => {
    const { type, team, user, clientUser } = contractEvent(i + 1);
    const ids = { event_type: type, team_id: team, user_id: user, client_user_id: clientUser };
    const text = `${JSON.stringify(ids).slice(0, -1)},${rest}`;
    const id = `msg_${i + 1}`;
    const at = new Date(1_600_000_000_000);
    const headers = {
      'svix-id': id,
      'svix-timestamp': String(at.getTime() / 1000),
      'svix-signature': new Webhook(SECRET).sign(id, at, text),
    };
    return contractEvent(i + 1, { headers, body: Buffer.from(text) });
  });
  await writeFiles(path, [batchOf(...events, contractEvent(4, { headers: {} }))]);
  return path;
}

describe('millrace archive verify', () => {
  it('checks signatures over the exact bytes, whatever their age', async () => {
    const path = await signedArchive();
    const { exit, stdout, stderr } = await run(
      archiveCommand,
      ['verify', path, '--secret-env', 'OLD', '--secret-env', 'NEW'],
      {
        OLD: OTHER,
        NEW: SECRET,
      },
    );
    expect(exit).toBe(0);
    expect(stdout).toContain('1 files, 4 records');
    expect(stdout).toContain('signatures: 3 verified, 0 without a matching secret, 0 invalid, 1 unsigned');
    expect(stderr).toContain('reading file 1 of 1');
    expect(stdout + stderr).not.toContain(SECRET);
  });

  it('takes the signing section of a config', async () => {
    const path = await signedArchive();
    const config = join(tempFolder(), 'millrace.yaml');
    writeFileSync(
      config,
      `signing: { secrets: ["\${S}"] }\nsinks: { archive: { type: files, path: x } }\nroutes: [{ match: "*", to: [archive] }]\n`,
    );
    expect((await run(archiveCommand, ['verify', path, '--config', config], { S: SECRET })).stdout).toContain(
      '3 verified',
    );
  });

  it('ends with 4 and names the file when something differs', async () => {
    const path = await signedArchive();
    const { exit, stdout } = await run(archiveCommand, ['verify', path, '--json', '--secret-env', 'S'], {
      S: OTHER,
    });
    expect(exit).toBe(4);
    const report: unknown = JSON.parse(stdout);
    expect(report).toMatchObject({
      records: 4,
      signatures: { verified: 0, unmatched: 3, invalid: 0, unsigned: 1 },
    });
    const [file = ''] = (await listArchive(path)).files;
    appendFileSync(join(path, file), 'x');
    const plain = await run(archiveCommand, ['verify', path]);
    expect(plain.exit).toBe(4);
    expect(plain.stdout).toContain(`difference ${file}: file_changed: `);
    expect(plain.stdout).toContain('signatures: not checked');
  });

  it('is a usage error when a secret is not there, without saying what others are', async () => {
    const path = await signedArchive();
    await expect(
      run(archiveCommand, ['verify', path, '--secret-env', 'GONE'], { S: SECRET }),
    ).rejects.toMatchObject({
      code: 'usage',
      detail: '--secret-env GONE: not set',
    });
  });

  it('takes secrets from a file, beside those of a config', async () => {
    const path = await signedArchive();
    const secrets = join(tempFolder(), 'secrets');
    writeFileSync(secrets, `# retired\n${OTHER}\n\n  ${SECRET}\n`);
    const { exit, stdout } = await run(archiveCommand, ['verify', path, '--secret-file', secrets]);
    expect(exit).toBe(0);
    expect(stdout).toContain('3 verified');
    expect(stdout).not.toContain(SECRET);
    writeFileSync(secrets, '# none\n');
    await expect(run(archiveCommand, ['verify', path, '--secret-file', secrets])).rejects.toMatchObject({
      code: 'usage',
    });
  });

  it('repairs on request, after a dry run', async () => {
    const path = await signedArchive();
    rmSync(join(path, '_manifest.jsonl'));
    const dry = await run(archiveCommand, ['verify', path, '--repair', '--dry-run']);
    expect(dry.exit).toBe(4);
    expect(dry.stdout).toContain('would      write manifest _manifest.jsonl: recreated from the files');
    const wet = await run(archiveCommand, ['verify', path, '--repair', '--json']);
    expect(wet.exit).toBe(0);
    expect(JSON.parse(wet.stdout)).toMatchObject({ differences: [], repair: { dry_run: false } });
    expect((await run(archiveCommand, ['verify', path])).exit).toBe(0);
    await expect(run(archiveCommand, ['verify', path, '--dry-run'])).rejects.toMatchObject({ code: 'usage' });
  });
});
