import { onTestFinished } from 'vitest';
import type { SandboxOptions } from '../../src/sandbox/options.ts';
import { startSandbox, type Sandbox } from '../../src/sandbox/start.ts';
import { ManualClock } from '../support/manual-clock.ts';

type Json = Readonly<Record<string, unknown>>;

export interface Answer {
  readonly status: number;
  readonly headers: Headers;
  readonly json: Json;
}

/** A sandbox of the running test's own on a clock that stands still, and plain HTTP to it. */
export class Bench {
  readonly sandbox: Sandbox;
  readonly clock: ManualClock;

  private constructor(sandbox: Sandbox, clock: ManualClock) {
    this.sandbox = sandbox;
    this.clock = clock;
  }

  static async start(options: SandboxOptions = {}): Promise<Bench> {
    const clock = new ManualClock();
    const sandbox = await startSandbox({ users: 20, days: 10, clock, ...options });
    onTestFinished(() => sandbox.stop());
    return new Bench(sandbox, clock);
  }

  get state(): Sandbox['state'] {
    return this.sandbox.state;
  }

  user(index: number = 0): string {
    return this.state.users.list(this.sandbox.teamId)[index]!.id;
  }

  /** With the team key, unless other headers are given. */
  async call(
    method: string,
    path: string,
    body?: unknown,
    headers?: Record<string, string>,
  ): Promise<Answer> {
    const form = body instanceof FormData;
    const response = await fetch(this.sandbox.url + path, {
      method,
      headers: {
        ...(body === undefined || form ? {} : { 'content-type': 'application/json' }),
        ...(headers ?? { 'x-service-api-key': this.sandbox.apiKey }),
      },
      ...(body === undefined ? {} : { body: form ? body : JSON.stringify(body) }),
    });
    const text = await response.text();
    let json: unknown = null;
    try {
      json = JSON.parse(text);
    } catch {
      json = { text };
    }
    return { status: response.status, headers: response.headers, json: Object(json) as Json };
  }

  /**
   * `GET /path`, with the team key. `{team}` stands for the team; `{user}`, `{test}`, `{account}` for the first of their kind,
   * `{user7}` for the eighth. In the body too.
   */
  ask(request: string, body?: object): Promise<Answer> {
    const { tests, accounts } = this.state.labs;
    const fill = (text: string): string =>
      text
        .replaceAll('{team}', this.sandbox.teamId)
        .replaceAll(/\{user(\d*)\}/g, (_, index: string) => this.user(Number(index)))
        .replaceAll(/\{test(\d*)\}/g, (_, index: string) => tests[Number(index)]!.id)
        .replaceAll(/\{account(\d*)\}/g, (_, index: string) => accounts[Number(index)]!.id);
    const [method = '', path = ''] = fill(request).split(' ');
    return this.call(method, path, body && JSON.parse(fill(JSON.stringify(body))));
  }

  get(path: string): Promise<Answer> {
    return this.ask(`GET ${path}`);
  }

  post(path: string, body: object = {}): Promise<Answer> {
    return this.ask(`POST ${path}`, body);
  }

  /** Places an order of the first user, unless the fields say another. */
  order(fields: object = {}, way: 'create' | 'import' = 'create'): Promise<Answer> {
    return this.post(`/v3/order/${way}`, { user_id: '{user}', lab_test_id: '{test}', ...fields });
  }

  /** Uploads a report of the first user, unless the fields say another. */
  upload(fields: Readonly<Record<string, string | Blob>> = {}): Promise<Answer> {
    const form = new FormData();
    for (const [name, value] of Object.entries({ file: pdf(), user_id: this.user(), ...fields }))
      form.set(name, value);
    return this.call('POST', '/lab_report/v1/parser/job', form);
  }

  /** Triggers the pulls of the first so many users. */
  trigger(provider: string, users = 20): Promise<Answer> {
    const user_ids = Array.from({ length: users }, (_, n) => this.user(n));
    return this.post('/v2/link/bulk_trigger_historical_pull', { user_ids, provider });
  }

  /** `GET /team`, as the organization, or with another Management Key. */
  manage(request: string, body?: unknown, key: string = this.sandbox.orgManagementKey): Promise<Answer> {
    const [method = '', path = ''] = request.replaceAll('{team}', this.sandbox.teamId).split(' ');
    return this.call(method, `/management/v1${path}`, body, { 'x-management-key': key });
  }
}

/** A file that passes for a PDF. */
export function pdf(bytes: number = 64): Blob {
  return new Blob([`%PDF-1.7 made up${' '.repeat(Math.max(0, bytes - 16))}`], { type: 'application/pdf' });
}
