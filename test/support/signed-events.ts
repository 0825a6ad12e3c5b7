import { request, type Dispatcher } from 'undici';
import { madeUpEvent } from '../../src/sandbox/made-up-events.ts';
import { signStandardWebhooks } from '../../src/receive/verify/sign-standard-webhooks.ts';

/** Base64 of nothing that guards anything: tests only. */
export const SECRET = `whsec_${Buffer.from('made-up secret of the tests only').toString('base64')}`;

export interface Answer {
  readonly status: number;
  readonly headers: Readonly<Record<string, string | string[] | undefined>>;
  readonly json: Readonly<Record<string, unknown>>;
}

export interface PostOptions {
  readonly id?: string;
  readonly secret?: string;
  /** Beside, or instead of, the signature headers. */
  readonly headers?: Readonly<Record<string, string>>;
  readonly dispatcher?: Dispatcher;
}

/** Signs and posts one body; a made-up event unless another is given. */
export async function postSigned(
  url: string,
  body: Buffer = madeUpEvent(0).body,
  options: PostOptions = {},
): Promise<Answer> {
  const id = options.id ?? madeUpEvent(0).id;
  const {
    statusCode,
    headers,
    body: answer,
  } = await request(url, {
    method: 'POST',
    headers: {
      'content-type': 'application/json',
      ...signStandardWebhooks(options.secret ?? SECRET, id, Date.now(), body),
      ...options.headers,
    },
    body,
    ...(options.dispatcher === undefined ? {} : { dispatcher: options.dispatcher }),
  });
  return { status: statusCode, headers, json: Object(await answer.json()) as Answer['json'] };
}
