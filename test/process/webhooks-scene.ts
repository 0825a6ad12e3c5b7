import type { IncomingMessage } from 'node:http';
import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { buffer } from 'node:stream/consumers';
import { onTestFinished } from 'vitest';
import { startSandbox, type Sandbox } from '../../src/sandbox/start.ts';
import type { Endpoint } from '../../src/sandbox/endpoints.ts';
import { temporaryFolder } from '../support/folders.ts';
import { freePort } from '../support/free-port.ts';
import { serve } from '../support/listen.ts';
import { millrace, writeConfig, type Ended } from '../support/millrace.ts';

type Hooked = string | void | Promise<string | void>;

/** What stands between a command and the service. */
export interface Gate {
  readonly url: string;
  /** Called for each request, before and after the service has it; what it returns takes the place of the answer's body. */
  hook: ((request: IncomingMessage, moment: 'before' | 'after', answer: string) => Hooked) | null;
}

/** A service, a config whose secret is in a file, and commands on both. */
export interface Scene {
  readonly folder: string;
  readonly config: string;
  readonly sandbox: Sandbox;
  readonly gate: Gate;
  /** Where the receiver of the config listens once it runs. */
  readonly url: string;
  readonly secretFile: string;
  readonly env: Readonly<Record<string, string>>;
  secrets(): string[];
  endpoints(): Endpoint[];
  webhooks(...args: string[]): Promise<Ended>;
}

export async function openScene(signing?: object): Promise<Scene> {
  const folder = await temporaryFolder();
  const sandbox = await startSandbox({ users: 1, days: 1 });
  onTestFinished(() => sandbox.stop());
  const gate = await openGate(sandbox.url);
  const port = await freePort();
  const secretFile = join(folder, 'webhook-secret');
  const config = writeConfig(folder, {
    server: { port },
    signing: signing ?? { secrets: [`\${file:${secretFile}}`] },
    service: { baseUrl: gate.url, managementKey: '${MANAGEMENT_KEY}' },
  });
  const env = { MANAGEMENT_KEY: sandbox.teamManagementKey };
  return {
    folder,
    config,
    sandbox,
    gate,
    url: `http://127.0.0.1:${port}/webhooks`,
    secretFile,
    env,
    secrets: () =>
      existsSync(secretFile) ? readFileSync(secretFile, 'utf8').split('\n').filter(Boolean) : [],
    endpoints: () => sandbox.state.endpoints.list(sandbox.teamId),
    webhooks: (...args) => millrace(['webhooks', ...args, '--config', config], { cwd: folder, env }),
  };
}

async function openGate(service: string): Promise<Gate> {
  const gate: { -readonly [Key in keyof Gate]: Gate[Key] } = { url: '', hook: null };
  const url = await serve((request, response) => {
    const passOn = async (body: Buffer): Promise<void> => {
      await gate.hook?.(request, 'before', '');
      const { method = 'GET', url: path = '/', headers } = request;
      const passed = Object.entries(headers).filter(([name]) => /^(content-type|x-.*)$/.test(name));
      const answer = await fetch(service + path, {
        method,
        headers: passed.map(([name, value]) => [name, String(value)] as [string, string]),
        ...(body.length === 0 ? {} : { body: new Uint8Array(body) }),
      });
      const text = await answer.text();
      const changed = await gate.hook?.(request, 'after', text);
      response.writeHead(answer.status, { 'content-type': 'application/json' }).end(changed ?? text);
    };
    // A hook that throws breaks the connection.
    void buffer(request)
      .then(passOn)
      .catch(() => response.destroy());
  });
  return Object.assign(gate, { url });
}
