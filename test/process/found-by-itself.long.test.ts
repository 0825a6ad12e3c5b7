import { rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { temporaryFolder } from '../support/folders.ts';
import { freePort } from '../support/free-port.ts';
import { millrace, millraceProcess, writeConfig } from '../support/millrace.ts';
import { ReceiverProcess } from '../support/receiver-process.ts';
import { postSigned, SECRET } from '../support/signed-events.ts';
import { until } from '../support/until.ts';

test('commands find the address and the secret by themselves, and a send that was broken off continues', async () => {
  const cwd = await temporaryFolder();
  const signing = { secrets: ['${MADE_UP_SECRET}'] };
  const server = { port: await freePort() };
  const config = writeConfig(cwd, { signing, server });
  writeFileSync(
    join(cwd, '.env'),
    `\uFEFFMADE_UP_SECRET=${SECRET}\nMILLRACE_CONFIG=${config}\nMILLRACE_LOG_LEVEL=info\n`,
  );
  const run = (...args: string[]) => millraceProcess(args, { cwd });
  const receiver = await ReceiverProcess.start(config, { cwd });

  const sent = await run('send', '--count', '3');
  expect(sent.code, sent.stderr).toBe(0);
  expect(await run('status', '--wait')).toMatchObject({
    code: 0,
    stdout: expect.stringMatching(/archive +running/),
  });
  const told = await run('tail', '--since', '1h', '--count', '3');
  expect(told.code, told.stderr).toBe(0);
  expect(told.stdout.match(/accepted/g)).toHaveLength(3);
  expect(told.stdout).not.toContain('\u001b');

  // One that is broken off for a moment continues by itself.
  const before = (await receiver.status()).journal.lastSeq;
  const going = run('send', '--count', '1500', '--retry', '30s');
  await until('some of them', async () => (await receiver.status()).journal.lastSeq > before + 100);
  await receiver.kill('SIGKILL');
  const next = await ReceiverProcess.start(config, { cwd });
  const went = await going;
  expect(went.code, went.stderr).toBe(0);
  expect(went.stdout.split('\n')).toHaveLength(1501);

  // One that stays broken says how far it came.
  const after = (await next.status()).journal.lastSeq;
  const stopping = run('send', '--count', '100000', '--retry', '100ms');
  await until('some of them', async () => (await next.status()).journal.lastSeq > after + 100);
  await next.kill('SIGKILL');
  const stopped = await stopping;
  const [, answered, rest] = /^(\d+) of 100000 were answered; .* --count (\d+)$/m.exec(stopped.stderr) ?? [];
  expect([stopped.code, Number(answered) + Number(rest)], stopped.stderr).toEqual([3, 100_000]);
  expect(stopped.stdout.split('\n')).toHaveLength(Number(answered) + 1);
});

test('a secret that is another, a file that is no fixture and a .env that cannot be read are told of', async () => {
  const cwd = await temporaryFolder();
  const config = writeConfig(cwd);
  const receiver = await ReceiverProcess.start(config, { cwd });
  // A link to itself: nobody can read it, whatever their rights.
  symlinkSync('.env', join(cwd, '.env'));
  const env = { MILLRACE_SECRET: `whsec_${Buffer.alloc(24, 7).toString('base64')}` };
  const other = await millraceProcess(['send', '--url', receiver.url], { cwd, env });
  expect([other.code, other.stderr]).toEqual([1, expect.stringContaining('401: the receiver at')]);
  expect(other.stderr).toContain('.env cannot be read');
  writeFileSync(join(cwd, 'real.json'), 'Lindqvist is here');
  const none = await millraceProcess(['send', '--fixture', 'real.json', '--config', config], { cwd });
  expect([none.code, none.stderr]).toEqual([2, expect.stringContaining('it is not JSON')]);
  expect(none.stderr).not.toContain('Lind');
  const bare = await millraceProcess(['status'], { cwd: await temporaryFolder() });
  expect(bare.stderr).toContain('millrace init');
});

test('a reload reads .env again; what the environment sets stays, and one that cannot be read changes nothing', async () => {
  const cwd = await temporaryFolder();
  const secrets = [1, 2, 3].map((byte) => `whsec_${Buffer.alloc(24, byte).toString('base64')}`);
  const [first = '', second = '', fixed = ''] = secrets;
  const config = writeConfig(cwd, { signing: { secrets: ['${FROM_FILE}', '${FIXED}'] } });
  const file = join(cwd, '.env');
  const write = (secret: string): void =>
    writeFileSync(file, `FROM_FILE=${secret}\nFIXED=${secret}\nMILLRACE_LOG_LEVEL=info\n`);
  write(first);
  const receiver = await ReceiverProcess.start(config, { cwd, env: { FIXED: fixed } });
  const taken = async (): Promise<boolean[]> => {
    const all = secrets.map(async (secret) => postSigned(receiver.url, undefined, { secret }));
    return (await Promise.all(all)).map(({ status }) => status < 300);
  };
  const reload = async (message: string): Promise<void> => {
    receiver.signal('SIGHUP');
    await until('the reload', () => receiver.logLines().some(({ msg }) => String(msg).startsWith(message)));
  };
  expect(await taken()).toEqual([true, false, true]);
  write(second);
  await reload('reloaded');
  expect(await taken()).toEqual([false, true, true]);
  rmSync(file);
  symlinkSync('.env', file);
  await reload('reload failed');
  expect(await taken()).toEqual([false, true, true]);
});

test('a .env that could not be read from the start stands in the way of no reload', async () => {
  const cwd = await temporaryFolder();
  symlinkSync('.env', join(cwd, '.env'));
  const secrets = [1, 2].map((byte) => `whsec_${Buffer.alloc(24, byte).toString('base64')}`);
  const [first = '', second = ''] = secrets;
  const config = writeConfig(cwd, { signing: { secrets: [first] } });
  const receiver = await ReceiverProcess.start(config, { cwd });
  writeConfig(cwd, { signing: { secrets: [second] } });
  receiver.signal('SIGHUP');
  const said = (): string[] =>
    receiver.logLines().flatMap(({ msg }) => (String(msg).startsWith('reload') ? [String(msg)] : []));
  await until('the reload', () => said().length > 0);
  expect(said()).toEqual([expect.not.stringContaining('failed')]);
  expect((await postSigned(receiver.url, undefined, { secret: second })).status).toBe(202);
});

test('status --wait ends with 1 when events still wait, and says for whom', async () => {
  const cwd = await temporaryFolder();
  const config = writeConfig(cwd, {
    sinks: {
      gone: { type: 'http', url: 'http://127.0.0.1:9/', secrets: [SECRET], privateNetworks: ['127.0.0.0/8'] },
    },
    routes: [{ match: '*', to: 'gone' }],
  });
  const receiver = await ReceiverProcess.start(config, { cwd });
  const run = (...args: string[]) => millrace([...args, '--config', config]);
  expect((await run('send')).code).toBe(0);
  const waited = await run('status', '--wait', '300ms');
  expect([waited.code, waited.stderr]).toEqual([1, 'events still wait for gone: after 300ms\n']);
  await receiver.kill('SIGKILL');
  expect(await run('status', '--wait')).toMatchObject({
    code: 1,
    stderr: expect.stringContaining('no receiver runs'),
  });
});
