import type { IncomingMessage, ServerResponse } from 'node:http';
import type { ProblemCode } from './outcome.ts';

/** Answers a request that is no delivery. */
export type Refuse = (
  request: IncomingMessage,
  response: ServerResponse,
  code: ProblemCode,
  detail: string,
) => void;

export interface Document {
  readonly type: string;
  readonly body: string | Uint8Array;
  /** True when it never changes. */
  readonly isFixed: boolean;
}

/** Public documents at the receiver's address. */
export interface Documents {
  /** Of their paths. */
  readonly prefix: string;
  /** @param path after the prefix, without a query @returns null for a document that does not exist, or not yet */
  find(path: string): Promise<Document | null>;
}

/** Documents read at the same time: each reads some small files. */
const AT_ONCE = 16;

/** @returns false for a request that is not for a document */
export function createReading(documents: Documents, refuse: Refuse) {
  let running = 0;
  return (request: IncomingMessage, response: ServerResponse): boolean => {
    const [path = ''] = (request.url ?? '').split('?');
    const isRead = request.method === 'GET' || request.method === 'HEAD';
    if (!isRead || !path.startsWith(documents.prefix)) return false;
    if (running >= AT_ONCE) {
      refuse(request, response, 'overloaded', 'try again in a moment');
      return true;
    }
    running += 1;
    const answer = (found: Document | null): void => {
      if (found === null) return refuse(request, response, 'not_found', 'there is nothing at this path yet');
      response.writeHead(200, {
        'content-type': found.type,
        'content-length': Buffer.byteLength(found.body),
        'cache-control': found.isFixed ? 'public, max-age=31536000, immutable' : 'no-cache',
        'x-content-type-options': 'nosniff',
      });
      response.end(found.body);
    };
    documents
      .find(path.slice(documents.prefix.length))
      .then(answer, () => refuse(request, response, 'internal', 'it could not be read'))
      .finally(() => (running -= 1));
    return true;
  };
}
