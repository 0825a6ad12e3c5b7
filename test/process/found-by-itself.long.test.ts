import { rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { expect, test } from 'vitest';
import { temporaryFolder } from '../support/folders.ts';
import { freePort } from '../support/free-port.ts';
import { millraceProcess } from '../support/millrace.ts';
import { Place, printing, saying } from '../support/place.ts';
import { ReceiverProcess } from '../support/receiver-process.ts';
import { SECRET } from '../support/signed-events.ts';
import { until } from '../support/until.ts';

const secretOf = (byte: number): string => `whsec_${Buffer.alloc(24, byte).toString('base64')}`;
const start = ({ config, folder: cwd }: Place, env = {}) => ReceiverProcess.start(config, { cwd, env });

test('commands find the address and the secret by themselves, and a send that was broken off continues', async () => {
  const place = await Place.make({
    signing: { secrets: ['${MADE_UP_SECRET}'] },
    server: { port: await freePort() },
  });
  const lines = [
    `\uFEFFMADE_UP_SECRET=${SECRET}`,
    `MILLRACE_CONFIG=${place.config}`,
    'MILLRACE_LOG_LEVEL=info',
  ];
  writeFileSync(place.at('.env'), `${lines.join('\n')}\n`);
  const run = (...args: string[]) => millraceProcess(args, { cwd: place.folder });
  const receiver = await start(place);

  const sent = await run('send', '--count', '3');
  expect(sent.code, sent.stderr).toBe(0);
  expect(await run('status', '--wait')).toMatchObject(printing(0, /archive +running/));
  const tailed = await run('tail', '--since', '1h', '--count', '3');
  expect(tailed.code, tailed.stderr).toBe(0);
  expect(tailed.stdout.match(/accepted/g)).toHaveLength(3);
  expect(tailed.stdout).not.toContain('\u001b');

  // One that is broken off for a moment continues by itself.
  const more = async (running: ReceiverProcess, ...args: string[]) => {
    const before = (await running.status()).journal.lastSeq;
    const going = run('send', ...args);
    await until('some of them', async () => (await running.status()).journal.lastSeq > before + 100);
    await running.kill('SIGKILL');
    return { going };
  };
  const { going } = await more(receiver, '--count', '1500', '--retry', '30s');
  const next = await start(place);
  const went = await going;
  expect(went.code, went.stderr).toBe(0);
  expect(went.stdout.split('\n')).toHaveLength(1501);

  // One that stays broken says how far it came.
  const stopped = await (await more(next, '--count', '100000', '--retry', '100ms')).going;
  const [, answered, rest] = /^(\d+) of 100000 were answered; .* --count (\d+)$/m.exec(stopped.stderr) ?? [];
  expect([stopped.code, Number(answered) + Number(rest)], stopped.stderr).toEqual([3, 100_000]);
  expect(stopped.stdout.split('\n')).toHaveLength(Number(answered) + 1);
});

test('a secret that is another, a file that is no fixture and a .env that cannot be read are reported', async () => {
  const place = await Place.make();
  const cwd = place.folder;
  const receiver = await start(place);
  // A link to itself: no one can read it, whatever their rights.
  symlinkSync('.env', place.at('.env'));
  const env = { MILLRACE_SECRET: secretOf(7) };
  const other = await millraceProcess(['send', '--url', receiver.url], { cwd, env });
  expect([other.code, other.stderr]).toEqual([1, expect.stringContaining('401: the receiver at')]);
  expect(other.stderr).toContain('.env cannot be read');
  writeFileSync(place.at('real.json'), 'Lindqvist is here');
  const none = await millraceProcess(['send', '--fixture', 'real.json', '--config', place.config], { cwd });
  expect([none.code, none.stderr]).toEqual([2, expect.stringContaining('it is not JSON')]);
  expect(none.stderr).not.toContain('Lind');
  const bare = await millraceProcess(['status'], { cwd: await temporaryFolder() });
  expect(bare.stderr).toContain('millrace init');
});

test('a reload reads .env again; what the environment sets stays, and one that cannot be read changes nothing', async () => {
  const place = await Place.make({ signing: { secrets: ['${FROM_FILE}', '${FIXED}'] } });
  const secrets = [1, 2, 3].map(secretOf);
  const [first = '', second = '', fixed = ''] = secrets;
  const file = place.at('.env');
  const write = (secret: string): void =>
    writeFileSync(file, `FROM_FILE=${secret}\nFIXED=${secret}\nMILLRACE_LOG_LEVEL=info\n`);
  write(first);
  const receiver = await start(place, { FIXED: fixed });
  const taken = async (): Promise<boolean[]> => {
    const all = await Promise.all(secrets.map((secret) => receiver.post(undefined, { secret })));
    return all.map(({ status }) => status < 300);
  };
  expect(await taken()).toEqual([true, false, true]);
  expect(receiver.stderr.match(/\.env sets \w+, but the environment has another value/g)).toEqual([
    '.env sets FIXED, but the environment has another value',
  ]);
  write(second);
  expect(await receiver.reload()).toMatchObject({ msg: 'reloaded' });
  expect(await taken()).toEqual([false, true, true]);
  rmSync(file);
  symlinkSync('.env', file);
  expect(await receiver.reload()).toMatchObject({ msg: expect.stringContaining('reload failed') });
  expect(await taken()).toEqual([false, true, true]);
});

test('a .env that could not be read from the start stands in the way of no reload', async () => {
  const place = await Place.make({ signing: { secrets: [secretOf(1)] } });
  symlinkSync('.env', place.at('.env'));
  const receiver = await start(place);
  place.edit((config) => (config.signing.secrets = [secretOf(2)]));
  expect(await receiver.reload()).toMatchObject({ msg: 'reloaded' });
  expect((await receiver.post(undefined, { secret: secretOf(2) })).status).toBe(202);
});

test('status --wait ends with 1 when events still wait, and says for whom', async () => {
  const place = await Place.make({
    sinks: {
      gone: { type: 'http', url: 'http://127.0.0.1:9/', secrets: [SECRET], privateNetworks: ['127.0.0.0/8'] },
    },
  });
  const receiver = await start(place);
  await place.ok('send');
  expect(await place.run('status', '--wait', '300ms')).toMatchObject({
    code: 1,
    stderr: 'events still wait for gone: after 300ms\n',
  });
  await receiver.kill('SIGKILL');
  expect(await place.run('status', '--wait')).toMatchObject(saying(1, 'no receiver runs'));
});
