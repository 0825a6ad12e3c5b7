import { type ChildProcess, execFileSync, spawn } from 'node:child_process';
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { isRunning, listens } from '../../support/child-server.ts';
import { freePort } from '../../support/free-port.ts';
import { SECRET } from '../../support/signed-events.ts';
import { until } from '../../support/until.ts';
import { PATH } from './vf.ts';

// A product that receives webhooks, as a process: `node products.ts NAME FOLDER`. It answers once an event is in its store.

interface Product {
  /** Its processes; the last one listens. */
  readonly commands: readonly (readonly [string, ...string[]])[];
  readonly records: () => number;
}

const KEY = SECRET.slice('whsec_'.length);

/** Into a Redis stream that is synced before each answer. */
function svixBridge(folder: string, port: number, redis: number): Product {
  const config = join(folder, 'bridge.yaml');
  writeFileSync(
    config,
    `http_listen_address: "127.0.0.1:${port}"
receivers:
  - name: bench
    input: { type: webhook, path_id: ${PATH.split('/').at(-1)}, verification: { type: svix, endpoint_secret: "${SECRET}" } }
    output: { type: redis, dsn: "redis://127.0.0.1:${redis}", max_connections: 64, queue_key: bench, consumer_group: bench, consumer_name: bench }
`,
  );
  const synced = ['--appendonly', 'yes', '--appendfsync', 'always', '--save', ''];
  return {
    commands: [
      ['redis-server', '--port', String(redis), '--bind', '127.0.0.1', '--dir', folder, ...synced],
      ['svix-bridge', '--cfg-file', config],
    ],
    records: () =>
      Number(execFileSync('redis-cli', ['-p', String(redis), 'XLEN', 'bench'], { encoding: 'utf8' })),
  };
}

/** Into its SQLite buffer, which it does not sync (PRAGMA synchronous = 0), and on into a file. */
function bento(folder: string, port: number): Product {
  const [config, file] = [join(folder, 'bento.yaml'), join(folder, 'events.ndjson')];
  writeFileSync(
    config,
    `http: { enabled: false }
logger: { level: ERROR }
input:
  http_server:
    address: "127.0.0.1:${port}"
    path: ${PATH}
    sync_response: { status: '\${! meta("status") }' }
  processors:
    - mapping: |
        let signed = meta("Webhook-Id") + "." + meta("Webhook-Timestamp") + "." + content().string()
        let own = "v1," + $signed.hash("hmac_sha256", "${KEY}".decode("base64")).encode("base64")
        meta status = if !meta("Webhook-Signature").split(" ").contains($own) { "401" } else if this.team_id.type() != "string" || this.user_id.type() != "string" { "400" }
        root = content()
    - switch:
        - check: meta("status") != null
          processors: [{ sync_response: {} }, { mapping: root = deleted() }]
buffer: { sqlite: { path: "${join(folder, 'buffer.db')}" } }
output: { file: { path: "${file}", codec: lines } }
`,
  );
  return {
    commands: [['bento', '-c', config]],
    records: () => readFileSync(file).reduce((lines, byte) => (byte === 10 ? lines + 1 : lines), 0),
  };
}

const [name = '', folder = ''] = process.argv.slice(2);
const [port, other] = [await freePort(), await freePort()];
const { commands, records } = name === 'bento' ? bento(folder, port) : svixBridge(folder, port, other);
const children: ChildProcess[] = [];
process.once('exit', () => children.forEach((child) => child.kill('SIGKILL')));
process.once('SIGTERM', () => {
  process.stdout.write(`${JSON.stringify({ records: records() })}\n`, () => process.exit());
});
for (const [program, ...args] of commands) {
  const child = spawn(program, args, { stdio: ['ignore', 'ignore', 'inherit'], cwd: folder });
  children.push(child);
  const own = program === 'redis-server' ? other : port;
  await until(`${program} to listen`, () => isRunning(program, child) && listens(own));
}
process.stdout.write(`${JSON.stringify({ port })}\n`);
