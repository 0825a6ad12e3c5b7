/** The signature schemes of the receiver; and signing, for tests of what verifies. */
export type {
  Precheck,
  Refusal,
  RefusalCode,
  RequestHeaders,
  Verification,
  Verifier,
} from '../core/verifier.ts';
export type { HmacOptions } from '../receive/verify/hmac.ts';
export { createVerifier, SCHEMES, type Scheme, type SigningOptions } from '../receive/verify/registry.ts';
export { signStandardWebhooks } from '../receive/verify/sign-standard-webhooks.ts';
