import { bodyId, isDeliveryId } from '../core/delivery-id.ts';
import type { Verifier } from '../core/verifier.ts';
import { headerOf } from './headers.ts';

/** No signature at all: anyone who reaches the port can feed events. For tests, and behind a proxy that verifies. */
export function createUnsigned(options: { idHeader?: string | null }): Verifier {
  const header = options.idHeader?.toLowerCase() ?? null;
  return {
    scheme: 'none',
    verify(headers, body) {
      const id = header === null ? null : headerOf(headers, header);
      if (header === null || id === null || !isDeliveryId(id)) {
        return { ok: true, id: bodyId(body), secret: -1, headers: {} };
      }
      return { ok: true, id, secret: -1, headers: { [header]: id } };
    },
  };
}
