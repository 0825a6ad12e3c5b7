import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { readFileSync, writeFileSync } from 'node:fs';
import { createServer, type Server } from 'node:http';
import { join } from 'node:path';
import { request as ask } from 'undici';
import { describe, expect, onTestFinished, test } from 'vitest';
import { parse } from 'yaml';
import { listens } from '../support/child-server.ts';
import { temporaryFolder } from '../support/folders.ts';
import { freePort } from '../support/free-port.ts';
import { listen } from '../support/listen.ts';
import { ROOT } from '../support/millrace.ts';
import { lacksProgram, skipped } from '../support/requirements.ts';
import { until } from '../support/until.ts';

const EXAMPLES = join(ROOT, 'deploy/load-balancing');
/** What the chart makes of a release `millrace` in the namespace `default`. */
const HOSTS = 'millrace-admin.default.svc.cluster.local';
const IDS = Array.from({ length: 40 }, (_, n) => `msg_made_up_${n}`);

/** Which replica had which ids, as the replica itself says. */
interface Replica {
  readonly server: Server;
  readonly port: number;
  readonly had: string[];
  /** X-Forwarded-For of each. */
  readonly senders: unknown[];
  /** Paths of what was only looked at. */
  readonly shown: string[];
}

async function replica(): Promise<Replica> {
  const had: string[] = [];
  const senders: unknown[] = [];
  const shown: string[] = [];
  const server = createServer((request, response) => {
    if (request.method === 'POST') {
      had.push(String(request.headers['svix-id'] ?? request.headers['webhook-id']));
      senders.push(request.headers['x-forwarded-for']);
    } else shown.push(String(request.url));
    request.resume().on('end', () => response.writeHead(request.url === '/readyz' ? 200 : 202).end());
  });
  const port = await listen(server);
  onTestFinished(() => {
    server.closeAllConnections();
    server.close();
  });
  return { server, port, had, senders, shown };
}

/** Runs a balancer with an example whose names and ports are those of this machine. */
async function balancer(
  program: string,
  file: string,
  args: ArgsOf,
  replicas: readonly Replica[],
): Promise<string> {
  const folder = await temporaryFolder();
  const path = join(folder, file);
  const port = await freePort();
  const [first, second] = replicas.map((one) => one.port);
  const text = readFileSync(join(EXAMPLES, file), 'utf8')
    .replaceAll(`millrace-0.${HOSTS}:8080`, `127.0.0.1:${first}`)
    .replaceAll(`millrace-1.${HOSTS}:8080`, `127.0.0.1:${second}`)
    .replace(`millrace-$1.${HOSTS}:8080`, '127.0.0.1:$receipts')
    .replace('http {', `http { map $1 $receipts { 0 ${first}; 1 ${second}; }`)
    .replace(/resolver kube-dns\S+/, 'resolver 127.0.0.1')
    // Needs nginx 1.27.3, and addresses need none.
    .replaceAll(' resolve max_fails', ' max_fails')
    .replace(/(listen |bind :)8000/, (_, word: string) =>
      word === 'bind :' ? `bind 127.0.0.1:${port}` : `listen 127.0.0.1:${port}`,
    )
    // The replicas of this test answer for their health on the port that they receive on.
    .replace('check port 9090', 'check');
  writeFileSync(path, text);
  const child = spawn(program, args(path, folder), { stdio: ['ignore', 'ignore', 'pipe'] });
  const said: string[] = [];
  child.stderr.on('data', (chunk) => said.push(String(chunk)));
  onTestFinished(async () => {
    child.kill('SIGKILL');
    if (child.exitCode === null && child.signalCode === null) await once(child, 'exit');
  });
  await until('the balancer listens', () => {
    if (child.exitCode !== null) throw new Error(said.join(''));
    return listens(port);
  });
  return `http://127.0.0.1:${port}/webhooks`;
}

/** On a connection of its own: balancers close idle ones when they like. */
async function post(url: string, name: string, id: string): Promise<number> {
  const headers = { [name]: id };
  const { statusCode, body } = await ask(url, { method: 'POST', headers, body: '{}', reset: true });
  await body.dump();
  return statusCode;
}

type ArgsOf = (path: string, folder: string) => readonly string[];

const PROGRAMS: readonly (readonly [program: string, file: string, ArgsOf])[] = [
  [
    'nginx',
    'nginx.conf',
    (path, folder) =>
      ['-c', path, '-p', folder, '-e', 'stderr', '-g', `daemon off; master_process off; pid ${folder}/pid;`], // prettier-ignore
  ],
  ['haproxy', 'haproxy.cfg', (path) => ['-db', '-f', path]],
];

describe.each(PROGRAMS)('%s', (program, file, args) => {
  const lack = lacksProgram(program);

  test.skipIf(lack)(
    `gives a repeated delivery to the replica that had it, and to another one when that is gone${skipped(lack)}`,
    async () => {
      const replicas = [await replica(), await replica()] as const;
      const url = await balancer(program, file, args, replicas);
      for (const name of ['svix-id', 'webhook-id', 'svix-id'])
        for (const id of IDS) expect(await post(url, name, id)).toBe(202);
      const [first, second] = replicas.map(({ had }) => new Set(had));
      expect([...(first ?? [])].filter((id) => second?.has(id))).toEqual([]);
      expect(Math.min(first?.size ?? 0, second?.size ?? 0)).toBeGreaterThan(5);
      // One hop, as server.trustedProxies: 1 has it.
      for (const { senders } of replicas) expect(new Set(senders)).toEqual(new Set(['127.0.0.1']));
      for (const n of [0, 1])
        await (await ask(new URL(`/${n}/receipts/checkpoint`, url), { reset: true })).body.dump();
      for (const { shown } of replicas)
        expect(shown.filter((path) => path !== '/readyz')).toEqual(['/receipts/checkpoint']);
      const [gone, left] = replicas;
      gone.server.closeAllConnections();
      gone.server.close();
      const [lost] = gone.had as [string];
      await until('another replica answers', async () => (await post(url, 'svix-id', lost)) === 202);
      expect(left.had).toContain(lost);
    },
  );
});

test('what the example for Envoy says is as the others have it', () => {
  const text = readFileSync(join(EXAMPLES, 'envoy.yaml'), 'utf8');
  const { static_resources: all } = parse(text) as {
    static_resources: { clusters: { lb_policy: string }[] };
  };
  expect(all.clusters.map((cluster) => cluster.lb_policy)).toEqual(['RING_HASH']);
  const names = [...text.matchAll(/header_name: (\S+)/g)].map(([, name]) => name);
  expect(names).toEqual(['svix-id', 'webhook-id']);
  expect(text).toContain('use_remote_address: true');
});
