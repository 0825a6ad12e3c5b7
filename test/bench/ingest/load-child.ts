import { connect, type Socket } from 'node:net';
import { makeRequests, type Requests } from './requests.ts';

// The load generator, a process of its own: raw sockets, requests made beforehand, as little parsing as will do.

export type LoadOrder =
  | { readonly op: 'make'; readonly count: number; readonly size: number }
  /** Closed loop: each connection sends its next request when it has the answer. */
  | { readonly op: 'flood'; readonly port: number; readonly connections: number }
  /** Open loop: requests a second at random times, whatever the answers do. */
  | { readonly op: 'pace'; readonly port: number; readonly connections: number; readonly rate: number };

export interface LoadResult {
  readonly elapsedMs: number;
  /** Answers by status. */
  readonly statuses: Readonly<Record<string, number>>;
  /** Milliseconds from when each request was due; 0 in a closed loop. */
  readonly p50: number;
  readonly p99: number;
}

/** What the next run sends. */
let made: Requests | null = null;

process.on('message', (order: LoadOrder) => {
  obey(order).then(
    (result) => process.send?.({ ok: true, result }),
    (error: unknown) => process.send?.({ ok: false, error: String(error) }),
  );
});
// The parent has ended, so the answer is not needed.
process.on('disconnect', () => process.exit());

async function obey(order: LoadOrder): Promise<LoadResult | null> {
  if (order.op === 'make') {
    made = makeRequests(order.count, order.size);
    return null;
  }
  if (made === null) throw new Error('no requests were made');
  const run = new Run(made, order.op === 'pace' ? order.rate : null);
  return run.against(order.port, order.connections);
}

interface Line {
  readonly socket: Socket;
  /** When its request was due. */
  due: number;
  /** What has come of an answer that is not whole. */
  rest: string;
}

class Run {
  readonly #requests: Requests;
  readonly #rate: number | null;
  readonly #statuses: Record<string, number> = {};
  readonly #latencies: Float64Array;
  readonly #idle: Line[] = [];
  readonly #done = Promise.withResolvers<void>();
  #next = 0;
  #answered = 0;
  /** When the next request is due. */
  #due = 0;

  constructor(requests: Requests, rate: number | null) {
    this.#requests = requests;
    this.#rate = rate;
    this.#latencies = new Float64Array(requests.count);
  }

  async against(port: number, connections: number): Promise<LoadResult> {
    const lines = await Promise.all(Array.from({ length: connections }, () => this.#open(port)));
    const started = performance.now();
    if (this.#rate === null) for (const line of lines) this.#send(line, started);
    else {
      this.#idle.push(...lines);
      this.#due = started;
      this.#tick();
    }
    await this.#done.promise;
    const elapsedMs = performance.now() - started;
    for (const { socket } of lines) socket.destroy();
    const sorted = this.#latencies.sort();
    const at = (share: number): number => sorted[Math.ceil(sorted.length * share) - 1] ?? 0;
    return { elapsedMs, statuses: this.#statuses, p50: at(0.5), p99: at(0.99) };
  }

  #open(port: number): Promise<Line> {
    return new Promise((resolve, reject) => {
      const buffer = Buffer.allocUnsafe(16 * 1024);
      const line: Line = {
        socket: connect({
          port,
          host: '127.0.0.1',
          noDelay: true,
          onread: {
            buffer,
            callback: (length) => {
              this.#read(line, buffer.toString('latin1', 0, length));
              return true;
            },
          },
        }),
        due: 0,
        rest: '',
      };
      line.socket.once('connect', () => resolve(line));
      line.socket.once('error', (error) => {
        reject(error);
        this.#done.reject(error);
      });
      line.socket.once('end', () => this.#done.reject(new Error('the server closed a connection')));
    });
  }

  #send(line: Line, due: number): void {
    line.due = due;
    line.socket.write(this.#requests.at(this.#next));
    this.#next += 1;
  }

  #read(line: Line, text: string): void {
    const answer = line.rest + text;
    const head = answer.indexOf('\r\n\r\n');
    const length = Number(/content-length: (\d+)/i.exec(answer)?.[1] ?? 0);
    if (head === -1 || answer.length < head + 4 + length) {
      line.rest = answer;
      return;
    }
    line.rest = '';
    const status = answer.slice(9, 12);
    this.#statuses[status] = (this.#statuses[status] ?? 0) + 1;
    this.#latencies[this.#answered] = this.#rate === null ? 0 : performance.now() - line.due;
    this.#answered += 1;
    if (this.#answered === this.#requests.count) this.#done.resolve();
    else if (this.#rate !== null) {
      this.#idle.push(line);
      this.#dispatch();
    } else if (this.#next < this.#requests.count) this.#send(line, 0);
  }

  #tick(): void {
    this.#dispatch();
    if (this.#next < this.#requests.count) setTimeout(() => this.#tick(), 1);
  }

  /** Sends what is due. What finds no free connection waits, and its wait counts. */
  #dispatch(): void {
    const now = performance.now();
    while (this.#due <= now && this.#next < this.#requests.count) {
      // In turn: the server closes a connection that brings no request for some seconds.
      const line = this.#idle.shift();
      if (line === undefined) return;
      this.#send(line, this.#due);
      this.#due += (-Math.log(1 - Math.random()) * 1000) / (this.#rate ?? 1);
    }
  }
}
