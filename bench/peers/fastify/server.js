// As in ../surus/app.php. Fastify compiles the schemas of body and response: both are given.
import cors from '@fastify/cors';
import jwt from '@fastify/jwt';
import rateLimit from '@fastify/rate-limit';
import secureSession from '@fastify/secure-session';
import Fastify from 'fastify';

const text = (minLength, maxLength) => ({ type: 'string', minLength, maxLength });
const object = (properties, required) => ({ type: 'object', properties, required });
const body = object({
  customer: object({
    name: text(1, 50),
    email: { type: 'string', format: 'email' },
    address: object({
      street: text(1, 100),
      city: text(1, 50),
      zip: { type: 'string', pattern: '^[0-9]{5}$' },
    }, ['street', 'city', 'zip']),
    age: { type: ['integer', 'null'] },
  }, ['name', 'email', 'address']),
  items: {
    type: 'array',
    minItems: 1,
    maxItems: 2000,
    items: object({
      sku: text(3, 20),
      title: text(1, 100),
      quantity: { type: 'integer', minimum: 1, maximum: 1000 },
      price: { type: 'number', minimum: 0 },
    }, ['sku', 'title', 'quantity', 'price']),
  },
  priority: { type: 'string', enum: ['low', 'normal', 'high'], default: 'normal' },
  tags: { type: 'array', maxItems: 10, items: text(0, 20), default: [] },
  note: { type: ['string', 'null'], maxLength: 500 },
}, ['customer', 'items']);
const response = { 200: object({ customer: { type: 'string' }, items: { type: 'integer' }, total: { type: 'number' } }) };

// Every error, as the others say it, and no coercion.
const app = Fastify({ ajv: { customOptions: { allErrors: true, coerceTypes: false, removeAdditional: false } } });
app.setErrorHandler((error, request, reply) => reply.code(error.validation ? 422 : error.statusCode ?? 500)
  .type('application/problem+json').send({ title: 'Unprocessable Content', status: 422, errors: error.validation }));
app.post('/orders', { schema: { body, response } }, async ({ body }) => ({
  customer: body.customer.email,
  items: body.items.length,
  total: body.items.reduce((total, item) => total + item.quantity * item.price, 0),
}));

await app.register(async (stack) => {
  await stack.register(secureSession, { key: Buffer.alloc(32, 's'), cookieName: 'session', cookie: { path: '/', httpOnly: true } });
  await stack.register(jwt, { secret: 'k'.repeat(32), verify: { allowedIss: 'https://issuer.example', allowedAud: 'api' } });
  stack.get('/login', async (request) => {
    request.session.set('user', 'ann');
    return { in: true };
  });
  await stack.register(async (guarded) => {
    await guarded.register(cors, { origin: ['https://app.example'], credentials: true });
    await guarded.register(rateLimit, { max: 1_000_000_000, timeWindow: 60_000 });
    const response = { 200: object({ session: { type: 'string' }, token: { type: 'string' } }) };
    guarded.get('/account', { schema: { response }, onRequest: (request) => request.jwtVerify() }, async (request) => (
      { session: request.session.get('user'), token: request.user.sub }));
  });
});
for (let i = 0; i < Number(process.env.ROUTES ?? 0); i++) {
  app.get(`/group${i % 100}/item${i}/:id`, async ({ params }) => ({ route: i, id: params.id }));
}
await app.listen({ host: '127.0.0.1', port: Number(process.env.PORT) });
