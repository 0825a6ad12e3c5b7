import { Pool } from 'undici';
import PQueue from 'p-queue';
import { MillraceError, messageOf } from '../core/errors.ts';

export interface Request {
  readonly headers: Readonly<Record<string, string>>;
  readonly body: Buffer;
}

export interface Answer {
  readonly status: number;
  /** Header `Millrace-Receipt`; null without one. */
  readonly receipt: string | null;
  readonly body: string;
}

/** Posts signed bodies to a receiver over a few connections, without retries. */
export class Sender {
  readonly #url: URL;
  readonly #pool: Pool;
  readonly #queue: PQueue;

  constructor(url: string, connections: number) {
    this.#url = new URL(url);
    this.#pool = new Pool(this.#url.origin, { connections, headersTimeout: 30_000, bodyTimeout: 30_000 });
    this.#queue = new PQueue({ concurrency: connections });
  }

  /** @throws MillraceError receiver_unreachable */
  send({ headers, body }: Request): Promise<Answer> {
    return this.#queue.add(async () => {
      try {
        const response = await this.#pool.request({
          path: this.#url.pathname + this.#url.search,
          method: 'POST',
          headers: { 'content-type': 'application/json', ...headers },
          body,
        });
        const { statusCode: status, headers: said } = response;
        const receipt = typeof said['millrace-receipt'] === 'string' ? said['millrace-receipt'] : null;
        return { status, receipt, body: await response.body.text() };
      } catch (error) {
        const detail = `${this.#url.origin}${this.#url.pathname}: ${messageOf(error)}`;
        throw new MillraceError('receiver_unreachable', detail, { cause: error });
      }
    });
  }

  /** Resolves when fewer than `limit` requests wait. */
  room(limit: number): Promise<void> {
    return this.#queue.onSizeLessThan(limit);
  }

  close(): Promise<void> {
    return this.#pool.close();
  }
}
