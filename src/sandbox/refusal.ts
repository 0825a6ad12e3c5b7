/** An answer other than success. The body is sent as it is: mostly `{"detail": …}`. */
export class Refusal extends Error {
  readonly status: number;
  readonly body: unknown;
  readonly headers: Readonly<Record<string, string>>;

  constructor(status: number, detail: unknown, headers: Readonly<Record<string, string>> = {}) {
    super(typeof detail === 'string' ? detail : JSON.stringify(detail));
    this.status = status;
    this.body = { detail };
    this.headers = headers;
  }
}
