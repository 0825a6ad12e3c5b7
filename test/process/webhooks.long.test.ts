import { chmodSync, existsSync, readFileSync, statSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { madeUpEvent } from '../../src/sandbox/made-up-events.ts';
import { CommandProcess } from '../support/command-process.ts';
import { millrace, type Ended } from '../support/millrace.ts';
import { printing, saying } from '../support/place.ts';
import { ReceiverProcess } from '../support/receiver-process.ts';
import { Receiver } from '../support/receiver.ts';
import { postSigned, SECRET } from '../support/signed-events.ts';
import { until } from '../support/until.ts';
import { openScene, type Scene } from './webhooks-scene.ts';

const modeOf = (path: string): number => statSync(path).mode & 0o777;

/** Runs a command in a process of its own, which is killed when the request comes, or once the service has answered it. */
async function killedAt(
  scene: Scene,
  args: readonly string[],
  method: string,
  path: RegExp,
  moment: 'before' | 'after',
) {
  const { folder: cwd, env, config } = scene;
  const command = new CommandProcess(['webhooks', ...args, '--config', config], { cwd, env });
  scene.gate.hook = (request, now) => {
    if (request.method !== method || !path.test(request.url ?? '') || now !== moment) return;
    scene.gate.hook = null;
    command.child.kill('SIGKILL');
    if (moment === 'before') throw new Error('the service is not asked');
  };
  expect(await command.ended()).toBe('SIGKILL');
}

test('create, rotate, retire: events are accepted throughout, and the old secret is refused in the end', async () => {
  const scene = await openScene();
  const { sandbox, url, webhooks, secrets, secretFile, endpoints, config, env } = scene;
  const created = await webhooks('create', '--url', url, '--events', 'daily.', '--json');
  expect(created).toMatchObject({ code: 0 });
  expect(JSON.parse(created.stdout)).toMatchObject({ action: 'created', url, receiver: { state: 'absent' } });
  const [old = ''] = secrets();
  expect(endpoints()).toMatchObject([{ url, eventTypes: ['daily.'], secrets: [old] }]);
  expect(created.stdout + created.stderr).not.toContain(old);
  expect(modeOf(secretFile)).toBe(0o600);
  expect(readFileSync(`${secretFile}.webhooks.json`, 'utf8')).not.toContain(old);

  const receiver = await ReceiverProcess.start(config, { env, cwd: scene.folder });
  const accepted = async (count: number): Promise<void> => {
    await until(`${count} events`, async () => (await receiver.status()).journal.events === count);
  };
  sandbox.sendEvents([madeUpEvent(0, 'daily.data.meal.created')]);
  await accepted(1);

  const rotated = await webhooks('rotate', '--json');
  expect(rotated).toMatchObject({ code: 0 });
  expect(JSON.parse(rotated.stdout)).toMatchObject({ action: 'rotated', receiver: { state: 'accepts' } });
  const [fresh = ''] = secrets();
  expect(secrets()).toEqual([fresh, old]);
  expect(endpoints()[0]?.secrets).toEqual([fresh, old]);
  const statusWith = async (secret: string, n: number): Promise<number> =>
    (await postSigned(url, madeUpEvent(n).body, { id: madeUpEvent(n).id, secret })).status;
  // Signed with both, it counts for the new one.
  const early = await webhooks('rotate', '--retire', '--unused-for', '0s');
  expect(early).toMatchObject(printing(3, 'no delivery has been signed with the new one'));
  sandbox.sendEvents([madeUpEvent(2, 'daily.data.meal.created')]);
  await accepted(2);
  expect((await receiver.status()).receiving?.signing.secrets).toMatchObject([
    { matches: 1 },
    { matches: 0, lastUsed: null },
  ]);
  expect([await statusWith(old, 3), await statusWith(fresh, 4)]).toEqual([202, 202]);
  const status = await millrace(['status', '--config', config], { env, cwd: scene.folder });
  expect(status.stdout).toMatch(/^secrets +since .*: \[0\] 2 times, last .*, \[1\] 1 times, last /m);

  const used = await webhooks('rotate', '--retire');
  expect(used).toMatchObject(printing(3, /stays, because it was used .* ago, and --unused-for is 1d/));
  expect(await webhooks('rotate')).toMatchObject(saying(2, 'is not over'));
  expect(secrets()).toEqual([fresh, old]);

  expect(await webhooks('rotate', '--retire', '--unused-for', '0s')).toMatchObject({ code: 0 });
  expect(secrets()).toEqual([fresh]);
  expect([await statusWith(old, 5), await statusWith(fresh, 6)]).toEqual([401, 202]);
  expect(await webhooks('rotate', '--retire')).toMatchObject({
    code: 0,
    stdout: 'there is no old secret to retire\n',
  });
});

test('a receiver that cannot read its config again does not have the service sign with what it would refuse', async () => {
  const scene = await openScene();
  const { url, webhooks, endpoints, secrets, config, env } = scene;
  await webhooks('create', '--url', url);
  const [old] = secrets();
  await Receiver.start(config, { env });
  const text = readFileSync(config, 'utf8');
  writeFileSync(config, text.replace('"archive":', '"_":'));
  // What the command needs of the config can be read all the same.
  expect(await webhooks('rotate')).toMatchObject({ code: 2 });
  writeFileSync(config, text.replace('"type": "files"', '"type": "./gone.js"'));
  const held = await webhooks('rotate');
  expect(held).toMatchObject(saying(3, 'could not read its config again'));
  expect(endpoints()[0]?.secrets).toEqual([old]);
  writeFileSync(config, text);
  expect(await webhooks('rotate', '--no-reload')).toMatchObject(saying(3, 'has not read its config again'));
  expect(endpoints()[0]?.secrets).toEqual([old]);
  expect(await webhooks('rotate')).toMatchObject({ code: 0 });
  expect(secrets()).toHaveLength(2);
  expect(endpoints()[0]?.secrets).toEqual(secrets());
});

test('test: the address and the secret that the service has, tried at the receiver', async () => {
  const scene = await openScene();
  const { url, webhooks, secretFile, endpoints, config, env } = scene;
  await webhooks('create', '--url', url);
  const receiver = await Receiver.start(config, { env });
  const good = await webhooks('test', '--json');
  expect(good.code).toBe(0);
  expect(JSON.parse(good.stdout)).toMatchObject({
    http: 202,
    outcome: 'accepted',
    url,
    event_type: 'millrace.test',
  });
  // Somebody has replaced the file.
  writeFileSync(secretFile, `whsec_${Buffer.alloc(32, 9).toString('base64')}\n`);
  await receiver.reload();
  expect(await webhooks('test')).toMatchObject(printing(1, '401 signature_invalid'));
  endpoints()[0]!.disabled = true;
  expect(await webhooks('test')).toMatchObject(saying(1, 'has disabled'));
  expect(await webhooks('list')).toMatchObject({
    stdout: expect.stringMatching(/^\S+ +http\S+ +all +disabled$/m),
  });
});

test.each([
  ['before', 'created'],
  ['after', 'finished'],
] as const)(
  'create, killed %s the service has it: the next run has it %s, once, with the stored secret',
  async (moment, action) => {
    const scene = await openScene();
    await killedAt(scene, ['create', '--url', scene.url], 'POST', /\/webhook$/, moment);
    const [stored] = scene.secrets();
    expect(stored).toMatch(/^whsec_/);
    const next = await scene.webhooks('create', '--url', scene.url, '--json');
    expect(next).toMatchObject({ code: 0 });
    expect(JSON.parse(next.stdout)).toMatchObject({ action: moment === 'before' ? 'finished' : action });
    expect(scene.secrets()).toEqual([stored]);
    expect(scene.endpoints()).toMatchObject([{ url: scene.url, secrets: [stored] }]);
  },
);

test.each(['before', 'after'] as const)(
  'rotate, killed %s the service has it: the next run finishes it',
  async (moment) => {
    const scene = await openScene();
    await scene.webhooks('create', '--url', scene.url);
    const [old] = scene.secrets();
    await killedAt(scene, ['rotate'], 'POST', /\/secret$/, moment);
    const [fresh, ...others] = scene.secrets();
    expect(others).toEqual([old]);
    expect(await scene.webhooks('rotate')).toMatchObject({ code: 0 });
    expect(scene.secrets()).toEqual([fresh, old]);
    expect(scene.endpoints()[0]?.secrets).toEqual([fresh, old]);
    expect(await scene.webhooks('rotate', '--retire', '--force')).toMatchObject({ code: 0 });
    expect(scene.secrets()).toEqual([fresh]);
  },
);

test('a second create changes nothing, and one while the first is at work names it', async () => {
  const scene = await openScene();
  const second: Ended[] = [];
  scene.gate.hook = async (request, moment) => {
    if (request.method !== 'POST' || moment !== 'before') return;
    scene.gate.hook = null;
    second.push(await millrace(['webhooks', 'create', '--url', scene.url, '--config', scene.config], scene));
  };
  expect(await scene.webhooks('create', '--url', scene.url)).toMatchObject({ code: 0 });
  expect(second).toMatchObject([
    {
      code: 2,
      stderr: expect.stringMatching(/webhook-secret is being changed by webhooks create \(process \d+/),
    },
  ]);
  expect(scene.endpoints()).toHaveLength(1);
  const again = await scene.webhooks('create', '--url', scene.url, '--events', 'labtest.');
  expect(again).toMatchObject(printing(0, 'nothing was changed'));
  expect(again.stderr).toContain('its event types are all; they were not changed');
  expect(scene.endpoints()).toMatchObject([{ secrets: scene.secrets() }]);
});

const OTHER = `whsec_${Buffer.alloc(32, 1).toString('base64')}`;

test('what is stored already stays, and a secret that the service makes is the one that is kept', async () => {
  const scene = await openScene();
  const own = `whsec_${Buffer.alloc(32, 2).toString('base64')}`;
  writeFileSync(scene.secretFile, OTHER);
  scene.gate.hook = (request, moment, answer) => {
    if (moment === 'before' || request.method !== 'POST') return answer;
    return JSON.stringify({ ...(JSON.parse(answer) as object), secret: own });
  };
  const created = await scene.webhooks('create', '--url', scene.url, '--show-secret');
  expect(created).toMatchObject(saying(0, 'a secret of its own'));
  expect(created.stdout).toContain(own);
  expect(scene.secrets()).toEqual([own, OTHER]);
});

test('a webhook that is there already gets its secret stored beside the others', async () => {
  const scene = await openScene();
  const { state, teamId } = scene.sandbox;
  const made = state.endpoints.create(teamId, { url: scene.url });
  writeFileSync(scene.secretFile, OTHER);
  const adopted = await scene.webhooks('create', '--url', scene.url);
  expect(adopted).toMatchObject(saying(0, 'it is added, and the others stay'));
  expect(scene.secrets()).toEqual([made.secrets[0], OTHER]);
});

test('a variable in .env: other lines stay, no one else reads it, and a running receiver has to be restarted', async () => {
  const scene = await openScene({ secrets: ['${WEBHOOK_SECRET}'] });
  const { folder, url, config, webhooks, endpoints, env } = scene;
  const file = join(folder, '.env');
  writeFileSync(file, 'FIRST=1\n# a comment\nexport WEBHOOK_SECRET=\nLAST=2', { mode: 0o644 });
  expect(await webhooks('create', '--url', url)).toMatchObject({ code: 0 });
  const [, old = ''] = /^export WEBHOOK_SECRET=(.*)$/m.exec(readFileSync(file, 'utf8')) ?? [];
  expect(readFileSync(file, 'utf8')).toBe(`FIRST=1\n# a comment\nexport WEBHOOK_SECRET=${old}\nLAST=2`);
  expect(endpoints()[0]?.secrets).toEqual([old]);
  expect(modeOf(file)).toBe(0o600);

  chmodSync(file, 0o640);
  const receiver = await Receiver.start(config, { env: { ...env, WEBHOOK_SECRET: old } });
  const waiting = await webhooks('rotate');
  expect(waiting).toMatchObject(saying(3, 'restart it'));
  expect(modeOf(file)).toBe(0o640);
  expect(endpoints()[0]?.secrets).toEqual([old]);
  const [, both = ''] = /^export WEBHOOK_SECRET="(.*)"$/m.exec(readFileSync(file, 'utf8')) ?? [];
  expect(both.split(' ')).toEqual([expect.stringMatching(/^whsec_/), old]);
  await receiver.kill('SIGTERM');
  await Receiver.start(config, { env: { ...env, WEBHOOK_SECRET: both } });
  expect(await webhooks('rotate')).toMatchObject({ code: 0 });
  expect(endpoints()[0]?.secrets).toEqual(both.split(' '));

  const elsewhere = { ...env, WEBHOOK_SECRET: `whsec_${Buffer.alloc(32, 3).toString('base64')}` };
  const refused = await millrace(['webhooks', 'rotate', '--config', config], { cwd: folder, env: elsewhere });
  expect(refused).toMatchObject(saying(2, 'not set by .env'));
});

test('what a person takes out of the file by hand is forgotten, and no secret is ever listed', async () => {
  const scene = await openScene();
  const { webhooks, url, secrets, secretFile, gate } = scene;
  await webhooks('create', '--url', url);
  await webhooks('rotate');
  const [fresh = ''] = secrets();
  // As a retirement leaves it that was killed between its two files.
  writeFileSync(secretFile, `${fresh}\n`);
  expect(await webhooks('rotate', '--retire')).toMatchObject({
    code: 0,
    stdout: 'there is no old secret to retire\n',
  });
  expect(await webhooks('rotate')).toMatchObject({ code: 0 });
  expect(secrets()).toEqual([expect.stringMatching(/^whsec_/), fresh]);
  gate.hook = (request, moment, answer) => {
    if (moment === 'before' || !request.url?.endsWith('/webhook')) return answer;
    const { data } = JSON.parse(answer) as { data: object[] };
    return JSON.stringify({ data: data.map((one) => ({ ...one, signing_secret: 'whsec_shown' })) });
  };
  const listed = await webhooks('list', '--json');
  expect(JSON.parse(listed.stdout)).toMatchObject({ url });
  expect(listed.stdout).not.toContain('whsec_');
});

test('a secret that is set elsewhere is given to the service as it is', async () => {
  const scene = await openScene({ secrets: ['${WEBHOOK_SECRET}'] });
  const { folder, url, config, endpoints } = scene;
  const env = { ...scene.env, WEBHOOK_SECRET: SECRET };
  const create = (...more: string[]) =>
    millrace(['webhooks', 'create', '--url', url, '--config', config, ...more], { cwd: folder, env });
  expect(await create()).toMatchObject(saying(2, 'not set by .env'));
  expect(await create('--keep-secret')).toMatchObject({ code: 0 });
  expect(await create('--keep-secret')).toMatchObject(printing(0, 'nothing was changed'));
  expect(endpoints()).toMatchObject([{ secrets: [SECRET] }]);
  expect(existsSync(join(folder, '.env'))).toBe(false);
});

test('delete asks first, and forgets the secret when asked to', async () => {
  const scene = await openScene();
  const { webhooks, url, endpoints, secrets } = scene;
  await webhooks('create', '--url', url);
  expect(await webhooks('delete', url)).toMatchObject(saying(2, 'add --yes'));
  expect(endpoints()).toHaveLength(1);
  await killedAt(scene, ['delete', url, '--yes', '--forget-secret'], 'DELETE', /\/webhook\//, 'after');
  expect([endpoints().length, secrets().length]).toEqual([0, 1]);
  expect(await webhooks('delete', url, '--yes', '--forget-secret')).toMatchObject({ code: 0 });
  expect(secrets()).toEqual([]);
  expect(await webhooks('delete', url, '--yes')).toMatchObject(saying(2, '0 webhooks'));
});

test.each([
  [{ secrets: [SECRET] }, 'names no file or variable'],
  [{ scheme: 'hmac', secrets: ['${file:x}'] }, 'signing.scheme is hmac'],
])('a config that has no place for a secret says so: %j', async (signing, words) => {
  const scene = await openScene(signing);
  const refused = await scene.webhooks('create', '--url', scene.url);
  expect(refused).toMatchObject(saying(2, words));
  expect(scene.endpoints()).toEqual([]);
});
