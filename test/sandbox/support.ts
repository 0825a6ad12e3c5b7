import { onTestFinished } from 'vitest';
import type { SandboxOptions } from '../../src/sandbox/options.ts';
import { startSandbox, type Sandbox } from '../../src/sandbox/start.ts';
import { ManualClock } from './manual-clock.ts';

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

  user(index: number = 0): string {
    return this.sandbox.state.users.list(this.sandbox.teamId)[index]!.id;
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

  get(path: string): Promise<Answer> {
    return this.call('GET', path);
  }

  post(path: string, body: unknown = {}): Promise<Answer> {
    return this.call('POST', path, body);
  }

  /** As the organization, or with another Management Key. */
  manage(method: string, path: string, body?: unknown, key?: string): Promise<Answer> {
    return this.call(method, `/management/v1${path}`, body, {
      'x-management-key': key ?? this.sandbox.orgManagementKey,
    });
  }
}

/** A file that passes for a PDF. */
export function pdf(bytes: number = 64): Blob {
  return new Blob([`%PDF-1.7 made up${' '.repeat(Math.max(0, bytes - 16))}`], { type: 'application/pdf' });
}

export function formOf(fields: Readonly<Record<string, string | Blob>>): FormData {
  const form = new FormData();
  for (const [name, value] of Object.entries(fields)) form.set(name, value);
  return form;
}
