import { appendFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { PassThrough } from 'node:stream';
import { Webhook } from 'standardwebhooks';
import { describe, expect, it } from 'vitest';
import { archiveCommand } from '../../src/cli/archive.ts';
import { listArchive } from '../../src/archive/places.ts';
import { contractEvent } from '../../src/sinks/contract-events.ts';
import { filesSink, signal, tempFolder } from '../sinks/support.ts';

const SECRET = `whsec_${Buffer.alloc(24, 7).toString('base64')}`;
const OTHER = `whsec_${Buffer.alloc(24, 8).toString('base64')}`;

async function run(args: readonly string[], env: Record<string, string> = {}) {
  const stdout = new PassThrough();
  const stderr = new PassThrough();
  let exit = 0;
  const io = {
    stdout,
    stderr,
    stdin: new PassThrough(),
    env,
    signal,
    onHangUp: () => undefined,
    onUncaught: () => undefined,
    whenOutputIsLost: () => undefined,
    setExit: (code: number) => void (exit = code),
  };
  await archiveCommand(io).exitOverride().parseAsync(args, { from: 'user' });
  return { exit, out: String(stdout.read() ?? ''), err: String(stderr.read() ?? '') };
}

/** An archive of events that were signed long ago, one of them with raw line breaks, one without a signature. */
async function signedArchive(): Promise<string> {
  const path = tempFolder();
  const { sink } = filesSink(path);
  await sink.open();
  const batch = ['"a":1}', '\r\n"a":"\\ud800"}', '"c":3}'].map((rest, i) => {
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
    return { event: contractEvent(i + 1, { headers, body: Buffer.from(text) }), destination: null };
  });
  await sink.send([...batch, { event: contractEvent(4, { headers: {} }), destination: null }], signal);
  await sink.close(signal);
  return path;
}

describe('millrace archive verify', () => {
  it('checks signatures over the exact bytes, whatever their age', async () => {
    const path = await signedArchive();
    const { exit, out, err } = await run(['verify', path, '--secret-env', 'OLD', '--secret-env', 'NEW'], {
      OLD: OTHER,
      NEW: SECRET,
    });
    expect(exit).toBe(0);
    expect(out).toContain('1 files, 4 records');
    expect(out).toContain('signatures: 3 verified, 0 without a matching secret, 0 invalid, 1 unsigned');
    expect(err).toContain('reading file 1 of 1');
    expect(out + err).not.toContain(SECRET);
  });

  it('takes the signing section of a config', async () => {
    const path = await signedArchive();
    const config = join(tempFolder(), 'millrace.yaml');
    writeFileSync(
      config,
      `signing: { secrets: ["\${S}"] }\nsinks: { archive: { type: files, path: x } }\nroutes: [{ match: "*", to: [archive] }]\n`,
    );
    expect((await run(['verify', path, '--config', config], { S: SECRET })).out).toContain('3 verified');
  });

  it('ends with 4 and names the file when something differs', async () => {
    const path = await signedArchive();
    const { exit, out } = await run(['verify', path, '--json', '--secret-env', 'S'], { S: OTHER });
    expect(exit).toBe(4);
    const report: unknown = JSON.parse(out);
    expect(report).toMatchObject({
      records: 4,
      signatures: { verified: 0, unmatched: 3, invalid: 0, unsigned: 1 },
    });
    const [file = ''] = (await listArchive(path)).files;
    appendFileSync(join(path, file), 'x');
    const plain = await run(['verify', path]);
    expect(plain.exit).toBe(4);
    expect(plain.out).toContain(`difference ${file}: file_changed: `);
    expect(plain.out).toContain('signatures: not checked');
  });

  it('is a usage error when a secret is not there, without saying what others are', async () => {
    const path = await signedArchive();
    await expect(run(['verify', path, '--secret-env', 'GONE'], { S: SECRET })).rejects.toMatchObject({
      code: 'usage',
      detail: '--secret-env GONE: not set',
    });
  });

  it('takes secrets from a file, beside those of a config', async () => {
    const path = await signedArchive();
    const secrets = join(tempFolder(), 'secrets');
    writeFileSync(secrets, `# retired\n${OTHER}\n\n  ${SECRET}\n`);
    const { exit, out } = await run(['verify', path, '--secret-file', secrets]);
    expect(exit).toBe(0);
    expect(out).toContain('3 verified');
    expect(out).not.toContain(SECRET);
    writeFileSync(secrets, '# none\n');
    await expect(run(['verify', path, '--secret-file', secrets])).rejects.toMatchObject({ code: 'usage' });
  });

  it('repairs when told to, after saying what it would do', async () => {
    const path = await signedArchive();
    rmSync(join(path, '_manifest.jsonl'));
    const dry = await run(['verify', path, '--repair', '--dry-run']);
    expect(dry.exit).toBe(4);
    expect(dry.out).toContain('would      write manifest _manifest.jsonl: recreated from the files');
    const wet = await run(['verify', path, '--repair', '--json']);
    expect(wet.exit).toBe(0);
    expect(JSON.parse(wet.out)).toMatchObject({ differences: [], repair: { dry_run: false } });
    expect((await run(['verify', path])).exit).toBe(0);
    await expect(run(['verify', path, '--dry-run'])).rejects.toMatchObject({ code: 'usage' });
  });

  it('has help with examples', () => {
    let help = '';
    const io = {
      stdout: new PassThrough(),
      stderr: new PassThrough(),
      stdin: new PassThrough(),
      env: {},
      signal,
      onHangUp: () => undefined,
      onUncaught: () => undefined,
      whenOutputIsLost: () => undefined,
      setExit: () => undefined,
    };
    const verify = archiveCommand(io).commands[0]!;
    verify.configureOutput({ writeOut: (text) => void (help += text) }).outputHelp();
    expect(help).toContain('Examples:');
    expect(help).toContain('Exit codes:');
    expect(help).not.toContain('default: []');
  });
});
